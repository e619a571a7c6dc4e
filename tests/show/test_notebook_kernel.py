"""A message is read although nothing tells of it."""

from __future__ import annotations

import asyncio
import time
from queue import Empty

import nbformat
import pytest
import zmq
import zmq.asyncio
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.session import Session

from bbrlab.show.execute import execute_notebook
from bbrlab.show.notebook_kernel import POLL_S, PollingChannel

SESSION = Session(key=b"secret")


async def message_without_its_edge(channel_class, timeout):
    """What a channel reads of a message whose edge was consumed before the event loop could see it."""
    with (
        zmq.asyncio.Context() as context,
        context.socket(zmq.DEALER) as socket,
        zmq.Context.shadow(context).socket(zmq.DEALER) as peer,
    ):
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        peer.connect(f"tcp://127.0.0.1:{port}")
        channel = channel_class(socket, SESSION)
        waiting = asyncio.ensure_future(channel.get_msg(timeout))
        await asyncio.sleep(0.3)  # it waits for an edge now
        SESSION.send(peer, "execute_reply")
        beside = zmq.Socket.shadow(socket.underlying)
        end = time.monotonic() + 20
        while not beside.get(zmq.EVENTS) & zmq.POLLIN:  # takes the edge while the loop does nothing else
            assert time.monotonic() < end, "the message did not come"
        return await asyncio.wait_for(waiting, 4 * POLL_S)


def test_a_message_whose_edge_is_lost_is_read():
    assert asyncio.run(message_without_its_edge(PollingChannel, None))["msg_type"] == "execute_reply"


def test_jupyters_own_channel_waits_for_ever():
    """Once this fails, notebook_kernel.py may go."""
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(message_without_its_edge(AsyncZMQSocketChannel, None))


def test_notebooks_are_executed_with_it(tmp_path, monkeypatch):
    read, get_msg = [], PollingChannel.get_msg

    async def noted(self, timeout=None):
        read.append(await get_msg(self, timeout))
        return read[-1]

    monkeypatch.setattr(PollingChannel, "get_msg", noted)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("6 * 7")])
    nbformat.write(notebook, tmp_path / "in.ipynb")
    execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", {})
    assert {"execute_reply", "execute_result"} <= {message["msg_type"] for message in read}


def test_a_channel_without_a_message_waits_as_long_as_is_said():
    async def nothing():
        with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as socket:
            await PollingChannel(socket, SESSION).get_msg(1.2 * POLL_S)

    started = time.monotonic()
    with pytest.raises(Empty):
        asyncio.run(nothing())
    assert 1.2 * POLL_S <= time.monotonic() - started < 4 * POLL_S
