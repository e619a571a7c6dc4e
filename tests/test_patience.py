"""The library preloaded into iperf3: what it answers without asking the kernel, and when it asks again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from bbrlab import guest_tools

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


def preloaded(argv, **more):
    env = dict(os.environ, LD_PRELOAD=str(guest_tools.library_folder() / guest_tools.LIBRARY), **more)
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


def test_a_transfer_of_a_size_arrives_whole():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    server = preloaded(["iperf3", "-s", "-1", "-i", "0", "-J", "-B", "127.0.0.1", "-p", port], BBRLAB_RECEIVE_LOWAT="0")
    for _ in range(50):
        client = preloaded(["iperf3", "-J", "-i", "0", "-l", "1M", "-n", "64M", "-c", "127.0.0.1", "-p", port], BBRLAB_FINITE="1")  # fmt: skip
        report = json.loads(client.communicate(timeout=30)[0])
        if "unable to connect" not in report.get("error", ""):
            break
    received = json.loads(server.communicate(timeout=30)[0])
    assert "error" not in report, report
    assert received["end"]["sum_received"]["bytes"] >= 64 << 20
