"""The connection to a notebook's kernel, which does not depend on being woken for each message.

An asyncio socket of pyzmq learns of a message by the edge of a file descriptor, and whoever looks at the socket beside the event loop takes
that edge. Seen here once, with pyzmq 27.3, jupyter_client 8.10 and nbclient 0.11: the reply was in the socket, the loop was not told, and the
notebook waited for ever with an idle kernel (who took the edge is not known; Jupyter's Session sends and receives by a shadow of the socket).
Others tell of the same (nteract/papermill#711). A poll with a timeout looks at the socket itself when it ends.
"""

from __future__ import annotations

import time
from queue import Empty
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.manager import AsyncKernelManager
from traitlets import Type

POLL_S = 1.0  # at most so much later comes a message whose edge is lost


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
    """A kernel's client whose channels poll: those that are read here (a notebook asks for no input, the heartbeat has a thread)."""

    shell_channel_class = Type(PollingChannel)
    iopub_channel_class = Type(PollingChannel)
    control_channel_class = Type(PollingChannel)


class PollingManager(AsyncKernelManager):
    """Starts a kernel and gives a PollingClient."""

    client_factory = Type(PollingClient)
