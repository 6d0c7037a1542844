# SPDX-License-Identifier: BSD-2-Clause
#
# Makes the table of symbols.c from the output of `nm -n`: addresses in ascending order, each with
# the name of the function that begins there; no name: the function before it ends there.
#
#	nm -n kernel.elf | awk -f batteries/symbols.awk >symbols.S
#
# Assemble it with the CFLAGS of the kernel. Link the kernel twice: first with the table of an empty
# file. The code must not move when the table grows, so the linker script puts .text before .rodata.

function entry(address, name)
{
	print ".section .rodata.battery_symbols, \"a\""
	print ".quad 0x" address ", " (name == "" ? "0" : "1f")
	if (name != "") {
		print ".section .rodata.battery_names, \"a\""
		print "1: .asciz \"" name "\""
	}
	last = name
}

BEGIN {
	print ".section .note.GNU-stack, \"\", %progbits"
	print ".section .rodata.battery_symbols, \"a\""
	print ".balign 8"
	print ".globl battery_symbols, battery_symbols_end"
	print "battery_symbols:"
}
# As text: awk takes 10e900 and 10e930 for numbers, and both are too large for it.
$2 ~ /^[tTwW]$/ && ($1 "") != address { entry($1, $3); address = $1 "" }
$2 ~ /^[bBdDrR]$/ && last != "" { entry($1, "") }
END {
	print ".section .rodata.battery_symbols, \"a\""
	print "battery_symbols_end:"
}
