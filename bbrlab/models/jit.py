"""numba's ``njit``, without the ``.numba_config.yaml`` of the working folder, and with a cache only where one can be.

numba reads that file when it is imported and whenever it compiles. What it may set (``cache_dir``, a folder of pickles; the processor
to compile for) would run a stranger's code, or change results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bbrlab.base import paths
from bbrlab.base.python import in_the_checkout

with in_the_checkout():
    import numba
    from numba.core import config

config._config_fname = str(paths.ROOT / config._config_fname)


def njit(cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """numba's; a function is compiled anew in each process where neither its folder nor one of the user can be written."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=cache, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            return numba.njit(**options)(function)

    return compiled
