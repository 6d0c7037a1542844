# SPDX-License-Identifier: BSD-2-Clause
"""Exports of the kernel's profilers, and what other tools read. legoprof is the command.

export.py takes an export out of a guest's memory and reads it; stacks.py makes stacks of its
samples and waits; diff.py compares two exports. Each other file writes one format.
"""
