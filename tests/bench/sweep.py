# SPDX-License-Identifier: BSD-2-Clause
"""
Says for each system call among which crowd its costs are measured, or why it needs none. A call
that the kernel implements and that is missing here is an error (tests/unit/test_sweep.py).
"""

from __future__ import annotations

from pathlib import Path

import stretches

TABLE = Path(__file__).resolve().parents[2] / "arch/x86/entry/syscalls.tbl"

# The programs that make the calls among a crowd. tests/boot/test_nostop.py checks that they do.
CROWDS = {
    # Threads that wait for the same thing: rows herd_* and stretch_herds.
    ("herds -- {}",): """
        read write accept connect poll pselect6 epoll_wait flock fcntl futex rt_sigtimedwait
        clock_nanosleep sched_yield signalfd4 timerfd_create timerfd_settime eventfd2 epoll_create1
        epoll_ctl openat""",
    # Rows stretch_*.
    tuple(f"crowd -- {crowd} {{}} calls" for crowd in stretches.CROWDS): """
        kill tgkill waitid wait4 rt_sigaction rt_sigprocmask rt_sigpending sched_getaffinity
        getpriority getrusage times timer_create timer_settime timer_delete clock_gettime execve
        exit_group getdents64 clone""",
    # Rows with these names and an operation.
    ("bench-crowds -- files {} 5",): """
        lstat newfstatat statx access faccessat2 statfs openat unlink unlinkat rename renameat
        renameat2 chmod fchmodat chown lchown fchownat utime utimes futimesat utimensat truncate
        readlink link linkat symlink mkdir rmdir chdir mknodat""",
    ("bench-crowds -- fds {} 5",): """
        fstat fstatfs lseek fsync fdatasync ftruncate fchmod fadvise64 fallocate readahead
        fgetxattr flistxattr fsetxattr fremovexattr syncfs getsockname getpeername getsockopt
        setsockopt shutdown listen bind pread64 preadv pwrite64 pwritev fchdir ioctl recvfrom sendto
        recvmsg sendmsg timerfd_gettime dup dup2 close close_range clone""",
    ("bench-crowds -- sockets {} 5",): "socket bind connect",
    ("bench-processes -- processes {} 5",): """
        getpgid getsid sched_getscheduler sched_getparam sched_rr_get_interval sched_getattr
        sched_setaffinity sched_setscheduler setpriority prlimit64 tkill get_robust_list setpgid
        setuid pause clone""",
    ("bench-processes -- timers {} 5",): "timer_gettime",
    ("bench-areas -- areas {} 5",): "mmap munmap clone",
}

# Calls that do what another one does, by a number of arguments, a format or a mask.
SAME = {
    "read": "readv preadv2",
    "write": "writev pwritev2",
    "openat": "open creat",
    "accept": "accept4",
    "poll": "ppoll",
    "pselect6": "select",
    "epoll_wait": "epoll_pwait epoll_pwait2",
    "epoll_create1": "epoll_create",
    "eventfd2": "eventfd",
    "signalfd4": "signalfd",
    "getdents64": "getdents",
    "dup2": "dup3",
    "clone": "clone3 fork vfork",
    "exit_group": "exit",
    "clock_nanosleep": "nanosleep",
    "mkdir": "mkdirat",
    "mknodat": "mknod",
    "symlink": "symlinkat",
    "readlink": "readlinkat",
    "access": "faccessat",
    "fchmodat": "fchmodat2",
    "fchmod": "fchown",
    "rt_sigtimedwait": "rt_sigsuspend",
    "kill": "rt_sigqueueinfo",
    "tgkill": "rt_tgsigqueueinfo",
    "sched_setscheduler": "sched_setparam sched_setattr",
    "timer_gettime": "timer_getoverrun",
    "newfstatat": "stat",
    "statfs": "setxattr lsetxattr getxattr lgetxattr listxattr llistxattr removexattr lremovexattr",
    "recvmsg": "recvmmsg",
    "sendmsg": "sendmmsg",
    "munmap": "mprotect mremap msync mincore madvise mlock mlock2 munlock brk",
}

NO_CROWD = {
    "what it reads or sets is the thread's, the process's or the system's": """
        getpid gettid getppid getuid geteuid getgid getegid getpgrp getgroups getresuid getresgid
        capget setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid umask
        getcwd uname sysinfo getrlimit setrlimit personality prctl arch_prctl sigaltstack
        rt_sigreturn restart_syscall set_tid_address set_robust_list rseq getcpu time gettimeofday
        clock_getres getitimer setitimer alarm sched_get_priority_max sched_get_priority_min
        sethostname setdomainname getrandom setsid""",
    "it makes a file that nothing else uses yet": """
        pipe pipe2 socketpair memfd_create""",
    "it takes as long as the bytes that it moves": """
        sendfile splice tee vmsplice copy_file_range syslog""",
    "it is for the whole system or process, and rare": """
        sync mount umount2 reboot mlockall munlockall membarrier""",
}


def implemented() -> set[str]:
    rows = (line.split("\t") for line in TABLE.read_text().splitlines() if line[:1].isdigit())
    return {row[1] for row in rows if row[2] != "-"}


def listed() -> list[str]:
    """Returns the calls of all tables; those among several crowds once."""
    measured = {call for calls in CROWDS.values() for call in calls.split()}
    others = " ".join([*SAME.values(), *NO_CROWD.values()]).split()
    return sorted([*measured, *others])


def problems() -> list[str]:
    """Returns what is wrong with the tables."""
    calls, names = listed(), implemented()
    measured = set(" ".join(CROWDS.values()).split())
    return [
        *(f"{name}: which crowd is it measured among?" for name in sorted(names - set(calls))),
        *(f"{name}: not implemented" for name in sorted(set(calls) - names)),
        *(f"{name}: twice" for name in sorted({c for c in calls if calls.count(c) > 1})),
        *(f"{name}: not measured itself" for name in SAME if name not in measured),
    ]
