# SPDX-License-Identifier: BSD-2-Clause
"""A Go program has the same output, status and system calls as on Linux."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from conftest import BUILD, ROOT

SOURCE = Path(__file__).with_name("go-timers") / "main.go"
RUN = re.compile(r"^--- .*: status (\d+)\n((?:.*\n)*?)(?=---|process \d+ )", re.MULTILINE)


def test_timers_and_garbage_collection(tmp_path) -> None:
    program = tmp_path / "go-timers"
    env = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": f"{tmp_path}/cache"}
    subprocess.run(["go", "build", "-o", program, SOURCE], check=True, env=env)
    command = [ROOT / "scripts/strace-compare", f"--build={BUILD}", "--cmd", "go-timers"]
    done = subprocess.run([*command, "--", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    (status, host), (guest_status, log) = RUN.findall(done.stdout)
    said = host.splitlines()
    assert status == guest_status == "3" and len(said) == 7 and said[0] == "timers: [10 30 60 90]"
    assert all(f"\n{line}\n" in log for line in said)
