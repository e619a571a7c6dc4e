"""bbrlab's words on the terminal, where Snakemake looks for them: a package of this name on Python's path."""

from bbrlab.campaign.terminal import LogHandler

__all__ = ["LogHandler"]
