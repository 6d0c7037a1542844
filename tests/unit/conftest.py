# SPDX-License-Identifier: BSD-2-Clause
"""Makes the scripts modules of the tests, and runs legoprof."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
sys.dont_write_bytecode = not sys.pycache_prefix
import legoprof  # noqa: E402


@pytest.fixture
def run_legoprof(tmp_path, capsysbinary):
    """
    Returns a function that runs legoprof on an export: (status, what it wrote or printed, stderr
    without the export's name).
    """
    path, output = tmp_path / "run.lego", tmp_path / "out"

    def run(export: bytes, command: str, *options: str) -> tuple[int, bytes, str]:
        path.write_bytes(export)
        output.unlink(missing_ok=True)
        target = [] if command == "report" else ["-o", str(output)]
        status = legoprof.main([command, str(path), *target, *options])
        printed, err = capsysbinary.readouterr()
        data = output.read_bytes() if output.exists() else printed
        return status, data, err.decode().replace(f"legoprof: {path}: ", "")

    return run
