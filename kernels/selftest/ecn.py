"""A receiver whose congestion control asks for no ECT itself must still echo the marks of what it receives (RFC 3168).

Prints one line per CCA that the receiver has: the marked packets that its peer, a CUBIC sender, was told of.
"""

import socket
import struct
import subprocess
import sys
import threading

DATA = b"x" * 20_000_000
# "loss" with "ecn" marks what may be marked in place of dropping it.
MARKS = "qdisc add dev lo root netem delay 2ms loss 5% ecn"
TCP_INFO_BYTES, DELIVERED_CE_AT = 256, 196  # struct tcp_info, uapi/linux/tcp.h


def choose(sock, cca):
    """Give a socket its CCA."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cca.encode())


def drain(server):
    """Receive one connection to its end."""
    peer, _ = server.accept()
    while peer.recv(1 << 16):
        pass
    peer.close()


def echoed(receiver_cca):
    """Marked packets that a CUBIC sender was told of by a receiver with that CCA."""
    server, client = socket.socket(), socket.socket()
    choose(server, receiver_cca)
    choose(client, "cubic")
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    thread = threading.Thread(target=drain, args=(server,))
    thread.start()
    client.connect(server.getsockname())
    # Marks begin after the handshake: a SYN may not be marked and is dropped, and sent again it asks for no ECN.
    subprocess.run(["tc", *MARKS.split()], check=True)
    client.sendall(DATA)
    client.shutdown(socket.SHUT_WR)
    thread.join()
    subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    client.close()
    return struct.unpack_from("<I", info, DELIVERED_CE_AT)[0]


def main(ccas):
    """One connection to a receiver with each CCA, over a link that marks a twentieth."""
    with open("/proc/sys/net/ipv4/tcp_ecn", "w", encoding="ascii") as file:
        file.write("1")
    for cca in ccas:
        print("selftest echoed", cca, echoed(cca), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["cubic", "bbr2", "bbr3"])
