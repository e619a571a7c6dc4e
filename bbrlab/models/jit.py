"""numba's ``njit``, without the ``.numba_config.yaml`` of the working folder.

numba reads that file when it is imported and whenever it compiles. What it may set (``cache_dir``, a folder of pickles; the processor
to compile for) would run a stranger's code, or change results.
"""

from __future__ import annotations

from bbrlab.base import paths
from bbrlab.base.python import in_the_checkout

with in_the_checkout():
    from numba import njit
    from numba.core import config

config._config_fname = str(paths.ROOT / config._config_fname)

__all__ = ["njit"]
