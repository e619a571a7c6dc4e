"""The library preloaded into iperf3: what it answers without asking the kernel, and when it asks again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bbrlab.experiment import iperf3_library

# A program as iperf3 is: sockets that do not block, and select() as the one call that waits.
PROGRAM = """
import os, select, socket, time

listener = socket.create_server(("127.0.0.1", 0))
ours = socket.create_connection(listener.getsockname())
peer, _ = listener.accept()
ours.setblocking(False)
block = bytes(1 << 20)

def fill():
    written = 0
    while True:
        try:
            written += os.write(ours.fileno(), block)
        except BlockingIOError:
            return written

def take(count):
    while count:
        count -= len(peer.recv(count))

def settle():
    select.select([], [ours], [], 5)

told = {}
take(fill())  # the first EAGAIN says that the socket does not block
settle()
first = fill()
take(first)
told["full until select"] = fill()
settle()
told["room after select"] = fill() > 0
settled = time.monotonic()
time.sleep(0.01)
told["clock stands"] = time.monotonic() == settled
select.select([], [], [], 0)
told["clock goes after select"] = time.monotonic() > settled + 0.009

pipe = os.pipe()
os.write(pipe[1], b"a")
select.select([pipe[0]], [], [], 1)
os.read(pipe[0], 9)  # may have waited
before = time.monotonic()
time.sleep(0.01)
told["clock goes after a call that may wait"] = time.monotonic() > before + 0.009
print(told)
"""


# Two blocks as iperf3 asks for them, each of a file of its own.
BLOCKS = """
import mmap, tempfile

def block():
    file = tempfile.TemporaryFile()
    file.truncate(1 << 20)
    return mmap.mmap(file.fileno(), 1 << 20, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)

one, other = block(), block()
one[0] = 7
del one
print(other[0])
"""

# A client as iperf3 is: a control connection, then streams in turn; each is to be open, on a socket that may wait.
# On one core, as in a guest: each core has numbers of its own for new sockets.
STREAMS = """
import os, socket

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
listener = socket.create_server(("127.0.0.1", 0))
listener.settimeout(2)

def stream():
    sock = socket.socket()
    sock.connect(listener.getsockname())
    return sock

def accepted():
    found = []
    listener.settimeout(0.2)
    try:
        while True:
            found.append(listener.accept()[0])
    except TimeoutError:
        return found

control = stream()
counts = [len(accepted())]
first = stream()
ends = accepted()
counts.append(len(ends))
others = [stream() for _ in range(3)]
counts.append(len(accepted()))
said = []
for i, sock in enumerate([first, *others]):
    sock.send(str(i).encode())
    said += [i for end in ends if end.getpeername() == sock.getsockname() and end.recv(9) == str(i).encode()]
inodes = [os.fstat(sock.fileno()).st_ino for sock in [first, *others]]
print(counts, said, inodes == sorted(inodes), all(os.get_blocking(s.fileno()) for s in [first, *others]))
listener.close()
"""


def preloaded(argv, library=iperf3_library.LIBRARY, **more):
    env = dict(os.environ, LD_PRELOAD=str(iperf3_library.library_folder() / library), **more)
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_what_is_known_until_the_program_waits():
    said, _ = preloaded([sys.executable, "-c", PROGRAM]).communicate(timeout=30)
    assert said.strip() == str(
        {
            "full until select": 0,
            "room after select": True,
            "clock stands": True,
            "clock goes after select": True,
            "clock goes after a call that may wait": True,
        }
    )


def test_streams_share_a_block():
    """A thousand streams would take 4 GiB of a guest, for bytes that nobody looks at."""
    said, _ = preloaded([sys.executable, "-c", BLOCKS]).communicate(timeout=30)
    assert said.strip() == "7"


@pytest.mark.parametrize(("together", "opened"), [("4", [1, 4, 0]), ("0", [1, 1, 3])])
def test_the_first_stream_opens_all(together, opened):
    """Sockets in the order of the streams, by which they are told apart (bbrlab/measure/sockets.py)."""
    client = preloaded([sys.executable, "-c", STREAMS], iperf3_library.TOGETHER, BBRLAB_TOGETHER=together)
    said, _ = client.communicate(timeout=30)
    arrived = [0, 1, 2, 3] if together == "4" else [0]
    assert said.strip() == f"{opened} {arrived} True True"


@pytest.mark.guest
def test_a_transfer_of_a_size_arrives_whole(run_scenario):
    """In virtual time, where the receiver has read what is acknowledged; in real time it may be late."""
    size = 64 << 20
    result = run_scenario(network__rate_mbit=100, flows=[{"cca": "cubic", "bytes": size}], window_s=[0, 10])
    told = result.manifest["iperf3"]["0"]
    assert told["sent_bytes"] >= size
    assert told["received_bytes"] == told["sent_bytes"]
