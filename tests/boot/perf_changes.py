# SPDX-License-Identifier: BSD-2-Clause
"""
Changes to a copy of the tree, to show what `make check-perf` finds: a NOP on a path, which costs
one instruction, and code and data that nothing uses, which cost none.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

NOP = 'asm volatile("nop");\n'


@dataclass
class Nop:
    file: str
    after: str  # the text that it follows
    operation: str  # one that must become slower
    functions: str  # a regular expression: where the compiler may have inlined it
    text: str = NOP

    def apply(self, tree: Path) -> None:
        source = (tree / self.file).read_text()
        assert source.count(self.after) == 1, f"{self.file} has changed: {self.after!r}"
        (tree / self.file).write_text(source.replace(self.after, self.after + self.text))

    def missing(self, output: str, more: str = r"\+[1-9][\d.]*") -> list[str]:
        """Returns the lines that check-perf should have printed: for the cost, and for the name."""
        lines = [
            rf"^operation {re.escape(self.operation)}: {more} instructions a round ",
            rf"^code that differs: (.*, )?({self.functions})( \([+-]\d+\))?(,|$)",
        ]
        return [line for line in lines if not re.search(line, output, re.MULTILINE)]


def call(file: str, name: str, operation: str) -> Nop:
    """Returns a NOP at the start of a system call."""
    source = (Path(__file__).resolve().parents[2] / file).read_text()
    head = re.search(rf"^SYSCALL_DEFINE\d\({name}[,)][^{{]*\n{{\n", source, re.MULTILINE)
    return Nop(file, head[0] if head else name, operation, f"(do_)?sys_{name}")


CALLS = {
    "close": call("kernel/fs/fdtable.c", "close", "dup, close"),
    "dup": call("kernel/fs/fcntl.c", "dup", "dup, close"),
    "getcwd": call("kernel/fs/dir.c", "getcwd", "getcwd"),
    "getppid": call("kernel/process/groups.c", "getppid", "getppid"),
    "kill": call("kernel/process/kill.c", "kill", "kill, signal handler"),
    "lseek": call("kernel/fs/read_write.c", "lseek", "lseek"),
    "munmap": call("kernel/mm/mmap.c", "munmap", "mmap, mprotect, munmap"),
    "read": call("kernel/fs/read_write.c", "read", "read /dev/zero"),
    "readlink": call("kernel/fs/dir.c", "readlink", "readlink"),
    "uname": call("kernel/process/info.c", "uname", "uname"),
}
TRAPS = "arch/x86/kernel/traps.c"
PATHS = {
    "entry": Nop(
        "arch/x86/entry/entry.S", "ENTRY(syscall_entry)\n", "getppid", "syscall_entry", "\tnop\n"
    ),
    "exit": Nop(
        "arch/x86/entry/common.c",
        "\tprofile_sys_exit(syscall_number(regs), READ_ONCE(regs->rax));\n",
        "uname",
        "do_syscall_64",
    ),
    "timer": Nop(
        "arch/x86/kernel/tick.c",
        "\tbool ticks = now >= this_cpu_read(tick_deadline);\n",
        "tick",
        "timer_interrupt",
    ),
    "nmi": Nop(TRAPS, "void do_nmi(struct pt_regs *regs)\n{\n", "sample by NMI", "do_nmi"),
    "schedule": Nop("kernel/sched/core.c", "void schedule(void)\n{\n", "yield", "schedule"),
    "fault": Nop(
        TRAPS,
        "static void page_fault(struct pt_regs *regs)\n{\n",
        "page fault",
        "page_fault|do_exception",
    ),
    "fork": Nop(
        "kernel/process/fork.c",
        "static int copy_process(struct process *proc, const struct clone_args *args)\n{\n",
        "fork, exit, wait",
        "copy_process|clone_\\w+",
    ),
    "exec": Nop(
        "kernel/process/exec.c",
        "int do_execve(const char *path, const char *const *argv, const char *const *envp,\n"
        "\t      struct pt_regs *regs)\n{\n",
        "vfork, exec, exit, wait",
        "do_execve",
    ),
}


@dataclass
class Dead:
    """Code or data that nothing uses."""

    text: str
    file: str = "arch/x86/kernel/reboot.c"

    def apply(self, tree: Path) -> None:
        with (tree / self.file).open("a") as source:
            source.write(self.text)


LAST_FILE = "kernel/profile/images/profiler.c"  # what the linker puts at the end of the text


def dead_code(nr_bytes: int) -> Dead:
    """Nothing moves. Sites that are patched cost more if they are in more pages."""
    body = f".globl dead_code\\ndead_code: .skip {nr_bytes}, 0x90\\n"
    return Dead(f'\nasm(".pushsection .text.zz, \\"ax\\"\\n{body}.popsection");\n', LAST_FILE)


DEAD = {
    "3,000 bytes of code": dead_code(3000),
    "9,000 bytes of code": dead_code(9000),
    "20,000 bytes of bss": Dead("\nchar dead_data[20000];\n"),
}


@contextmanager
def applied(tree: Path, changes: list[Nop] | list[Dead]) -> Iterator[None]:
    """Changes sources of the tree, and restores them."""
    saved = {change.file: (tree / change.file).read_bytes() for change in changes}
    try:
        for change in changes:
            change.apply(tree)
        yield
    finally:
        for file, text in saved.items():
            (tree / file).write_bytes(text)
