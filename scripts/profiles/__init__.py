# SPDX-License-Identifier: BSD-2-Clause
"""Reads exports of the kernel's profilers and writes the formats of other tools, for legoprof.

export.py takes an export out of a guest's memory and reads it. stacks.py and events.py make stacks
and events of its rows. report.py prints tables, merge.py joins exports, and diff.py compares two.
Most other files write one format each.
"""
