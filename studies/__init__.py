"""Studies: each module serves one notebook (notebooks/) and its tables. Nothing in the library uses them but `bbrlab model table`."""

import bbrlab.show.plots  # noqa: F401  (matplotlib, without a stranger's matplotlibrc)
