# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of session.txt: typed into a shell on a terminal, or as scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pexpect

SESSION = Path(__file__).with_name("session.txt")
KEY = re.compile(r"\{\^(.)\}")
# The shell's prompt, or `> ` inside a command. The shell then asks for the cursor's position.
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
        """Returns whether the block needs a terminal."""
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
    """
    Writes each block that needs no terminal as a script in root/session, numbered, and returns the
    names of the scripts.
    """
    directory = root / "session"
    directory.mkdir(parents=True)
    names = []
    for block in read_blocks():
        if block.is_typed:
            continue
        # Linux truncates the name of a process to 15 bytes.
        name = f"{len(names) + 1:02}-{block.name}"[:15]
        path = directory / name
        path.write_text("#!/bin/sh\n" + "\n".join(block.steps) + "\n")
        path.chmod(0o755)
        names.append(name)
    return names


def typed(step: str) -> str:
    """Returns what the keyboard sends for a step."""
    text = KEY.sub(lambda key: chr(ord(key[1]) ^ 0x40), step)
    return text if text[-1] < " " else text + "\r"


class Console(pexpect.spawn):
    """A terminal on which a command starts a shell. play() types a block into it."""

    def __init__(self, argv: list[str], log: Path):
        # latin-1 keeps each byte; a serial line has no size.
        super().__init__(argv[0], argv[1:], encoding="latin-1", dimensions=(0, 0), timeout=120)
        self.log = log.open("w", newline="")
        self.logfile_read = self.log
        self.delaybeforesend = None
        self.shown = ""

    def wait_for(self, pattern: str) -> None:
        self.expect(pattern)
        self.shown += self.before + self.after

    def play(self, block: Block) -> str:
        """Types a block, and returns all that the terminal shows, up to the next prompt."""
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
    """Returns the same blocks as write_scripts() in one script, each in a subshell."""
    blocks = [block for block in read_blocks() if not block.is_typed]
    return "".join(f"echo '== {b.name}'\n(\n" + "\n".join(b.steps) + "\n)\n" for b in blocks)
