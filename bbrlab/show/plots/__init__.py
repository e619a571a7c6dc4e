"""The plots. Each function draws one figure and returns it."""

from bbrlab.base.python import in_the_checkout

with in_the_checkout():  # where no stranger's matplotlibrc lies
    import matplotlib  # noqa: F401
