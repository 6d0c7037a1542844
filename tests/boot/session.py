# SPDX-License-Identifier: BSD-2-Clause
"""The commands of session.txt: typed into a shell on a terminal, or as scripts in an image."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pexpect

SESSION = Path(__file__).with_name("session.txt")
KEY = re.compile(r"\{\^(.)\}")
# The shell's prompt, or the one for more of a command; it asks the terminal where the cursor is.
PROMPT = r"\n(?:lego:[^\r\n]*# |> )\x1b\[6n"
DRIVER = """\
for script in /session/*; do
	echo "== ${script##*/}"
	$script
done
"""


@dataclass
class Block:
    name: str
    steps: list[str] = field(default_factory=list)

    @property
    def is_typed(self) -> bool:
        """Only a terminal will do."""
        keys = any(step[0] in "<+" or KEY.search(step) for step in self.steps)
        return keys or self.name.endswith(" (typed)")


def read_blocks() -> list[Block]:
    blocks: list[Block] = []
    for line in SESSION.read_text().splitlines():
        if line.startswith("## "):
            blocks.append(Block(line[3:]))
        elif blocks and line:
            blocks[-1].steps.append(line)
    return blocks


def write_scripts(root: Path) -> list[str]:
    """The blocks that need no terminal, numbered, as programs in root/session: their names."""
    directory = root / "session"
    directory.mkdir(parents=True)
    names = []
    for block in read_blocks():
        if block.is_typed:
            continue
        # No longer than a process's name.
        name = f"{len(names) + 1:02}-{block.name}"[:15]
        path = directory / name
        path.write_text("#!/bin/sh\n" + "\n".join(block.steps) + "\n")
        path.chmod(0o755)
        names.append(name)
    return names


def typed(step: str) -> str:
    """What the keyboard sends."""
    text = KEY.sub(lambda key: chr(ord(key[1]) ^ 0x40), step)
    return text if text[-1] < " " else text + "\r"


class Console(pexpect.spawn):
    """A shell on a terminal, which the command makes, to play the blocks on."""

    def __init__(self, argv: list[str], log: Path):
        # Bytes as they are; a serial line has no size.
        super().__init__(argv[0], argv[1:], encoding="latin-1", dimensions=(0, 0), timeout=120)
        self.log = log.open("w", newline="")
        self.logfile_read = self.log
        self.delaybeforesend = None
        self.shown = ""

    def wait_for(self, pattern: str) -> None:
        self.expect(pattern)
        self.shown += self.before + self.after

    def play(self, block: Block) -> str:
        """All that the terminal shows, up to the prompt after the command."""
        self.shown = ""
        for step, after in zip(block.steps, [*block.steps[1:], ""]):
            if step[0] == "<":
                self.wait_for("\n" + re.escape(step[1:].replace(r"\n", "\r\n")))
                continue
            self.send(typed(step.removeprefix("+")))
            if after[:1] not in ("<", "+") and not KEY.fullmatch(after):
                self.wait_for(PROMPT)
        return self.shown

    def play_all(self) -> dict[str, str]:
        self.wait_for(PROMPT)
        shown = {block.name: self.play(block) for block in read_blocks()}
        self.send("exit 0\r")
        self.expect(pexpect.EOF)
        self.close()
        return shown


def one_script() -> str:
    """What write_scripts() makes, as one: a subshell for each block."""
    blocks = [block for block in read_blocks() if not block.is_typed]
    return "".join(f"echo '== {b.name}'\n(\n" + "\n".join(b.steps) + "\n)\n" for b in blocks)
