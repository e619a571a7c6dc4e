"""Opens and closes thousands of connections with each CCA, in every way that a module may trip over.

Prints one line per CCA: sockets and unreclaimable kernel memory before and after.
"""

import contextlib
import socket
import sys
import time

ROUNDS = 1000
DATA = b"x" * 20_000
TIME_WAIT_S = 70  # virtual


def kernel_memory_kb():
    """(TCP sockets that exist, unreclaimable slab in kB)."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        words = next(line for line in file if line.startswith("TCP:")).split()
    with open("/proc/meminfo", encoding="ascii") as file:
        slab = next(line for line in file if line.startswith("SUnreclaim:")).split()[1]
    return int(words[words.index("alloc") + 1]), int(slab)


def choose(sock, cca):
    """Give a socket its CCA."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cca.encode())


def exchange(server, cca, others, number):
    """One connection: the CCA is chosen before or after the handshake, changed on the way, or reset by a disconnect."""
    client = socket.socket()
    if number % 2:
        choose(client, cca)  # then an ACK (of the SYN) comes before init
    client.connect(server.getsockname())
    choose(client, cca)
    peer, _ = server.accept()
    client.sendall(DATA)
    if number % 3 == 0:
        choose(client, others[number % len(others)])
        client.sendall(DATA)
    received = 0
    wanted = len(DATA) * (2 if number % 3 == 0 else 1)
    while received < wanted:
        received += len(peer.recv(1 << 16))
    if number % 5 == 0:  # abort: RST
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    peer.close()


def refused(cca):
    """A connect that fails: TCP tells the module of a state before it was ever initialised."""
    client = socket.socket()
    choose(client, cca)
    with contextlib.suppress(ConnectionRefusedError):
        client.connect(("127.0.0.1", 9))
    client.close()


def main(ccas):
    """Try all, once to warm the kernel's caches up and once measured."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(64)
    for cca in ccas:
        others = [c for c in ccas if c != cca]
        for _ in ("warm-up", "measured"):
            before = kernel_memory_kb()
            for number in range(ROUNDS):
                exchange(server, cca, others, number)
                if number % 10 == 0:
                    refused(cca)
            time.sleep(TIME_WAIT_S)
            after = kernel_memory_kb()
        print("selftest measured", cca, *before, *after, flush=True)


if __name__ == "__main__":
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
        available = file.read().split()
    main([c for c in sys.argv[1:] or available if c in available])
