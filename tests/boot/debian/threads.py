# SPDX-License-Identifier: BSD-2-Clause
"""Uses threads, files, subprocesses and time, for test_debian.py."""

import os
import subprocess
import sys
import threading
import time

WORDS = [f"word{i}" for i in range(200)]


def count(path, totals, lock):
    with open(path, "rb") as file:
        data = file.read()
    with lock:
        totals.append(len(data.split()))


def main():
    names = [f"/tmp/work/py{i}" for i in range(4)]
    for i, name in enumerate(names):
        with open(name, "w") as file:
            file.write("\n".join(WORDS[: 50 * (i + 1)]))
    totals, lock = [], threading.Lock()
    threads = [threading.Thread(target=count, args=(name, totals, lock)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(totals), threading.active_count())

    done = subprocess.run(["sort", "-r", names[0]], capture_output=True, text=True)
    print(done.returncode, done.stdout.split()[:3])
    child = subprocess.Popen(["sh", "-c", "read x; echo got $x; exit 5"], stdin=-1, stdout=-1)
    print(child.communicate(b"line\n"), child.returncode)
    # The child has made all its calls before the time limit begins, however busy the machine is.
    child = subprocess.Popen(["sh", "-c", "kill -STOP $$"])
    print(os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1]))
    try:
        child.wait(timeout=0.05)
    except subprocess.TimeoutExpired as error:
        print("too long:", error.cmd)
    child.kill()
    print(child.wait())

    before = time.monotonic(), time.time()
    time.sleep(0.02)
    print(time.monotonic() - before[0] >= 0.02, time.time() > before[1] > 1e9)
    timer = threading.Timer(0.01, print, ["timer"])
    timer.start()
    timer.join()
    os.rename(names[0], names[0] + ".new")
    print(sorted(name for name in os.listdir("/tmp/work") if name.startswith("py")))
    print(os.stat(names[1]).st_size, os.getcwd(), sys.argv)


main()
