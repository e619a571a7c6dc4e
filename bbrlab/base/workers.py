"""A pool of processes that is gone when its user is done with it, or is interrupted."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext

from bbrlab.base.errors import UserError
from bbrlab.base.python import safe_path


@contextlib.contextmanager
def workers(
    count: int, begin: Callable[[], None], killed: str, kept: str, context: BaseContext | None = None
) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes are told to end (SIGTERM), and whose waiting jobs are dropped, when the block ends by an exception.

    UserError in the place of BrokenProcessPool, if one of them is killed.

    Args:
        begin: called first in each of them; it decides what signals do there.
        killed: what to say if one of them is: "a process that graded was killed".
        kept: what is left then: "what is graded is kept".
        context: how processes are started; default: the platform's way.
    """
    # What multiprocessing starts is `python -c`, a tracker of its semaphores first of all.
    with safe_path(), ProcessPoolExecutor(count, context, begin) as pool:
        try:
            yield pool
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            if isinstance(error, BrokenProcessPool):
                less = " fewer --cores take less" if count > 1 else ""
                raise UserError(f"{killed} (was there too little memory?{less}); {kept}, start again") from None
            raise
