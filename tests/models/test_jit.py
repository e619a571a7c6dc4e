"""How the models are compiled."""

from __future__ import annotations

import subprocess
import sys

from bbrlab.base import paths

# As for a user without a home, beside a checkout that is another's. The tests may run as root, who may write everywhere.
PROGRAM = """
from numba.core import caching
def refuse(self):
    raise PermissionError(self.get_cache_path())
caching._CacheLocator.ensure_cache_path = refuse
from bbrlab.models import _burst_loop, _fluid_kernel
print(_fluid_kernel.change_before([1, 5, 9], 3, 6))
"""


def test_where_nothing_can_be_written_it_compiles_without_a_cache():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=paths.ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().isdigit()
