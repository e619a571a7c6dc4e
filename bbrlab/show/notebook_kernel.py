"""The connection to a notebook's kernel, which does not depend on being woken for each message.

pyzmq's asyncio sockets learn of a message by the edge of a file descriptor. Now and then one is lost: the message is in the socket, nobody
looks, and the notebook waits for ever with an idle kernel (seen here with pyzmq 27.3 and nbclient 0.11; nteract/papermill#711). A poll with
a timeout looks at the socket itself when it ends.
"""

from __future__ import annotations

import time
from queue import Empty
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.manager import AsyncKernelManager
from traitlets import Type

POLL_S = 1.0  # a message whose edge is lost comes so much later


class PollingChannel(AsyncZMQSocketChannel):
    """A channel that polls its socket every POLL_S."""

    async def get_msg(self, timeout: float | None = None) -> dict[str, Any]:  # type: ignore[override]
        """The next message. Empty if none comes within ``timeout`` seconds (None: wait for ever)."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = POLL_S if end is None else min(POLL_S, end - time.monotonic())
            try:
                return await super().get_msg(max(left, 0))
            except Empty:
                if end is not None and time.monotonic() >= end:
                    raise


class PollingClient(AsyncKernelClient):
    """A kernel's client whose channels poll."""

    shell_channel_class = Type(PollingChannel)
    iopub_channel_class = Type(PollingChannel)
    control_channel_class = Type(PollingChannel)


class PollingManager(AsyncKernelManager):
    """Starts a kernel and gives a PollingClient."""

    client_factory = Type(PollingClient)
