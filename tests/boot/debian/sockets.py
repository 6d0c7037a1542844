# SPDX-License-Identifier: BSD-2-Clause
"""Sockets, selectors, locks, signals, shared memory and several processes, for test_debian.py."""

import fcntl
import mmap
import os
import select
import signal
import socket

NAME = "/tmp/work/socket"


def serve(server):
    connection, _ = server.accept()
    message, descriptors, _, _ = socket.recv_fds(connection, 100, 1)
    connection.send(message.upper() + os.read(descriptors[0], 100))
    os._exit(3)


def talk():
    server = socket.socket(socket.AF_UNIX)
    server.bind(NAME)
    server.listen()
    child = os.fork()
    if not child:
        serve(server)
    client = socket.socket(socket.AF_UNIX)
    client.connect(NAME)
    with open("/etc/passwd") as file:
        socket.send_fds(client, [b"message "], [file.fileno()])
    epoll = select.epoll()
    epoll.register(client, select.EPOLLIN)
    print([event for _, event in epoll.poll()], client.recv(100)[:20])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def share():
    shared = mmap.mmap(-1, 4096)
    lock = open("/tmp/work/locked", "w")
    fcntl.lockf(lock, fcntl.LOCK_EX)
    child = os.fork()
    if not child:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            shared[0] = 7
        os.kill(os.getppid(), signal.SIGUSR1)
        os._exit(0)
    print(signal.sigwaitinfo([signal.SIGUSR1]).si_pid == child, shared[0])
    os.waitpid(child, 0)


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
talk()
share()
