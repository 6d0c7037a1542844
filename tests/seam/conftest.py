# SPDX-License-Identifier: BSD-2-Clause
"""The tests of this folder use functions of tests/boot/."""

import sys
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "boot"))
