"""What the notebooks (notebooks/) need: cells and plots that they share, and studies that serve one of them. Nothing in the library uses them but `bbrlab model table`."""

import bbrlab.show.plots  # noqa: F401  (matplotlib, without a stranger's matplotlibrc)
