# SPDX-License-Identifier: BSD-2-Clause
#
# Pipes, events and files, for test_debian.py.

set cat [open "|cat" r+]
fconfigure $cat -buffering line
puts $cat hello
puts [gets $cat]
close $cat
puts [catch {exec sh -c {exit 3}}]
puts [lindex $::errorCode 2]
after 20 {set done 1}
vwait done

proc read_line {pipe} {
	global done
	if {[gets $pipe line] >= 0} {
		puts "got $line"
	} elseif {[eof $pipe]} {
		close $pipe
		set done 2
	}
}
set pipe [open "|sh -c {echo 1; sleep 0.05; echo 2}"]
fconfigure $pipe -blocking 0
fileevent $pipe readable [list read_line $pipe]
vwait done
file mkdir a/b
file rename a c
puts [glob c/*]
exit 6
