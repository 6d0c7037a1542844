# SPDX-License-Identifier: BSD-2-Clause
"""The terminal: the tests type, tests/user/abi/typed.c reads. The terminal must behave as Linux's,
so most tests also run on a pseudoterminal of the host."""

import fcntl
import os
import re
import select
import subprocess
import termios
import time

import pytest

from harness import BUILD

CTRL_C, CTRL_D, CTRL_U, CTRL_V, CTRL_W, CTRL_Z, ERASE = "\3\4\x15\x16\x17\x1a\x7f"
HOLDS = 4095  # bytes of input that the terminal buffers


class HostTerminal:
    """A program on a pseudoterminal of the host, with the interface of qemu.Guest."""

    def __init__(self, program, what, tty, *numbers):
        self.fd, slave = os.openpty()
        self.text, self.searched = "", 0
        tty = os.ttyname(slave) if tty != "-" else tty
        argv = [program, what, tty, *map(str, numbers)]
        self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)

    def read(self, wait_s):
        if not select.select([self.fd], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other end is closed
            return False
        self.text += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)

    def expect(self, pattern):
        end = time.monotonic() + 120
        while not (match := re.compile(pattern, re.MULTILINE).search(self.text, self.searched)):
            assert time.monotonic() < end, f"no {pattern!r} in:\n{self.text}"
            self.read(0.1)
        self.searched = match.end()
        return match

    def send(self, data):
        os.write(self.fd, data.encode())

    def finish(self):
        while self.process.poll() is None or self.read(0):
            self.read(0.1)
        assert self.process.returncode == 0
        return self.text

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


@pytest.fixture(params=["host", "guest", "guest4"])
def terminal(request, boot):
    """terminal(what, tty, number...) starts `typed`; its finish() returns all output."""
    stack = []

    def start(what, tty="-", *numbers):
        if request.param == "host":
            boot.builds.initrd()
            host = HostTerminal(BUILD / "user" / "typed", what, tty, *numbers)
            stack.append(host.close)
            return host
        smp = 4 if request.param == "guest4" else 1
        context = boot.start("typed", what, tty, *numbers, smp=smp, append="profile.on_exit=none")
        guest = context.__enter__()
        stack.append(lambda: context.__exit__(None, None, None))
        guest.finish = lambda: boot.finish(guest.wait(), ok=True, check=True).log
        return guest

    yield start
    for close in stack:
        close()


def answers(text, word="read"):
    return re.findall(rf"^(?:.*[^\w\n])?({word} -?\d+:.*)$", text, re.MULTILINE)


def test_line_editing(terminal):
    t = terminal("lines")
    t.expect("typed: go")
    for typed, shown, read in [
        ("one\r", "one\n", "read 4: o n e 0a"),
        (f"abx{ERASE}c\n", "abx\b \bc\n", "read 4: a b c 0a"),
        (f"{ERASE}{ERASE}\r", "\n", "read 1: 0a"),
        (f"gone{CTRL_U}here\r", "gone" + "\b \b" * 4 + "here\n", "read 5: h e r e 0a"),
        (f"two words {CTRL_W}\r", "two words " + "\b \b" * 6 + "\n", "read 5: t w o 20 0a"),
        (f"{CTRL_V}{CTRL_D}\r", "^\b^D\n", "read 2: 04 0a"),
        (f"\tx{ERASE}{ERASE}y\r", "\tx\b \b" + "\b" * 8 + "y\n", "read 2: y 0a"),
    ]:
        t.send(typed)
        t.expect(re.escape(shown + read) + "$")
    t.send(CTRL_D + CTRL_D)
    t.finish()


def test_a_read_is_a_line(terminal):
    t = terminal("lines", "-", 4)
    t.expect("typed: go")
    t.send("ab\rcdefgh\r")
    t.expect("read 3: a b 0a$")
    t.expect("read 4: c d e f$")
    t.expect("read 3: g h 0a$")
    # Ctrl-D after part of a line, and after a line that fills the reader's buffer.
    t.send(f"xy{CTRL_D}")
    t.expect("read 2: x y$")
    t.send(f"wxyz{CTRL_D}")
    t.expect("read 4: w x y z$")
    t.send(f"{CTRL_D}")
    t.expect("read 0:$")
    t.send(f"{CTRL_D}")
    text = t.finish()
    assert text.count("read 0:") == 2


def test_longest_line(terminal):
    t = terminal("lines")
    t.expect("typed: go")
    for _ in range(50):
        t.send("x" * 100)
        time.sleep(0.02)
    t.send("\r")
    t.expect("read 4096: x x x")
    t.send("ok\r")
    t.expect("read 3: o k 0a$")
    t.send(CTRL_D + CTRL_D)
    t.finish()


@pytest.mark.parametrize(
    "min_bytes, decis, typed, reads",
    [
        (1, 0, ["\3"], ["read 1: 03"]),
        (5, 0, ["a\3\4\x7f\r"], ["read 5: a 03 04 7f 0d"]),
        (3, 0, ["a", "b", "c"], ["read 3: a b c"]),
        (5, 20, ["ab"], ["read 2: a b"]),
        (0, 3, [], ["read 0:", "read 0:"]),
        (0, 0, [], ["read 0:", "read 0:", "read 0:"]),
        (0, 50, ["z"], ["read 1: z"]),
    ],
)
def test_raw(terminal, min_bytes, decis, typed, reads):
    t = terminal("raw", "-", min_bytes, decis, len(reads))
    t.expect("typed: go")
    for keys in typed:
        t.send(keys)
        time.sleep(0.1)
    assert answers(t.finish()) == reads


def test_poll(terminal):
    t = terminal("polls")
    t.expect("typed: go")
    t.expect("poll: 0x4$")
    t.send("ab")
    time.sleep(0.2)
    t.send("c\r")
    t.expect("poll: 0x1, 4 bytes$")
    text = t.finish()
    assert answers(text) == [
        "read 4: a b c 0a",
        "read -1: Resource temporarily unavailable",
        "read 0:",
    ]


def test_splice(terminal):
    t = terminal("splices")
    t.expect("typed: go")
    t.send("one\r")
    t.expect("one\none\nspliced 4, 4$")
    t.send(f"two{CTRL_D}")
    t.expect("twotwospliced 3, 3$")
    t.send(CTRL_D)
    text = t.finish()
    assert answers(text, "spliced") == ["spliced 0:"]
    assert answers(text, "offset") == ["offset -1: Invalid argument"]
    assert answers(text, "in") == ["in -1: Resource temporarily unavailable"]
    assert answers(text, "stopped") == [
        "stopped -1: Resource temporarily unavailable",
        "stopped -1: Interrupted system call",
    ]
    assert "abc\nleft 4, 4\n" in text


def test_job_control(terminal):
    t = terminal("jobs", "/dev/ttyS0")
    t.expect("jobs: mine 1$")
    t.expect("typed: go")
    t.send(CTRL_Z)
    t.expect(r"\^Z.*pause: stopped by 20$|pause: stopped by 20$")
    t.expect("typed: go")
    t.send(CTRL_C)
    t.expect("pause: ended by 2$")
    t.expect("reader: stopped by 21$")
    t.expect("typed: go")
    t.send("line\r")
    t.expect("child 5: l i n e 0a$")
    t.expect("reader: exit 0$")
    t.expect("child -1: Input/output error$")
    t.expect("ignorer: exit 0$")
    t.expect("writer: stopped by 22$")
    t.expect("child: wrote$")
    t.expect("writer: exit 0$")
    t.expect("taker: stopped by 22$")
    t.expect("taker: ended by 9$")
    t.finish()


def test_interrupted_read(terminal):
    t = terminal("interrupts", "/dev/ttyS0")
    t.expect("typed: interrupted$")  # the window's size has changed
    t.expect("typed: go")  # and sleeps in read()
    t.send("lost" + CTRL_C)
    t.expect("typed: interrupted$")
    t.expect("read -1: Interrupted system call$")
    t.expect("typed: go")
    t.send(CTRL_C)
    t.expect("typed: interrupted$")
    t.send("x\r")
    t.expect("read 2: x 0a$")
    t.finish()


def fnv(data):
    value = 2166136261
    for byte in data.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return f"{value:08x}"


@pytest.mark.parametrize(
    "late_s, smp, nr", [(0, 1, 1200), (0, 4, 1200), (2, 2, 1200), (0, 32, 300)]
)
def test_paste(boot, late_s, smp, nr):
    """
    32 KB come at once, before the program reads: eight times what the terminal holds (with 32 CPUs
    twice). The sender waits, and nothing is lost.
    """
    data = "".join(f"{i}: a line of a long text\n" for i in range(nr))
    assert len(data) > 26 * nr
    with boot.start("typed", "sum", "-", late_s, smp=smp) as guest:
        guest.expect("typed: go")
        guest.send(data + CTRL_D)
        guest.expect(f"sum: {len(data)} bytes, {fnv(data)}")
        boot.finish(guest.wait(), ok=True, check=True)


def wait_until_taken(guest) -> None:
    """Waits until QEMU has taken all that was sent, so that the UART or the kernel has it."""
    left = bytearray(4)
    while fcntl.ioctl(guest.process.stdin, termios.FIONREAD, left) or any(left):
        time.sleep(0.01)
    time.sleep(0.5)  # the kernel may still be reading the last byte from the UART


@pytest.mark.parametrize("in_fifo", [0, 1])
def test_break_when_buffers_are_full(boot, in_fifo):
    """
    The terminal's buffer is full, and so is the UART, which takes only one byte from QEMU at a
    trigger level of 1. The BREAK is still noticed, and nothing is lost.
    """
    data = ("0123456\n" * 600)[: HOLDS + in_fifo]
    with boot.start("typed", "sum", "-", 8, smp=2) as guest:
        guest.expect("typed: go")
        guest.send(data)
        wait_until_taken(guest)
        for _ in range(2):
            guest.sysrq("h")
            guest.expect("sysrq: z  ")
        assert "sum: " not in guest.text
        guest.send("\n" + CTRL_D)
        data += "\n"
        guest.expect(f"sum: {len(data)} bytes, {fnv(data)}")
        boot.finish(guest.wait(), ok=True, check=True)


@pytest.mark.parametrize("smp", [1, 4])
def test_break_during_output(boot, smp):
    nr_lines = 20000
    with boot.start("typed", "flood", "-", nr_lines, smp=smp) as guest:
        guest.expect("flood: line 100 ")
        nr_sent = 0
        while nr_sent < 10 and f"line {nr_lines - 1} " not in guest.text:
            guest.sysrq("h")
            guest.expect("sysrq: z  ")
            nr_sent += 1
        result = boot.finish(guest.wait(), ok=True, check=True)
    assert nr_sent > 1
    assert result.log.count("sysrq: list the keys") == nr_sent
    # Each kernel message has its own line. The rest is the program's output, complete and in order.
    lines = [line for line in result.log.splitlines() if not re.match(r"\[ *\d+\.\d{6}\]", line)]
    flood = "".join(lines).split("typed: go", 1)[1]
    want = "".join(f"flood: line {i} of {nr_lines}" for i in range(nr_lines))
    assert flood.startswith(want)


def test_output_waits_for_the_log(boot):
    """The output of a program is printed before the kernel's messages about its exit."""
    log = boot("typed", "flood", "-", 3000, smp=2).log
    last = log.index("PASS: typed: flood")
    assert log.index("line 2999 of") < last < log.index("report 1: typed (pid 1) exited")
    assert len(re.findall(r"^flood: line \d+ of 3000$", log, re.MULTILINE)) == 3000


def test_syslog(boot):
    result = boot("klog", smp=2)
    assert "PASS: klog" in result.log and "(999)" not in result.log
