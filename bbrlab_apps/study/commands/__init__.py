"""``bbrlab sweep``, ``plot``, ``show``, ``compare`` and ``list``."""

# ruff: noqa: F401
from __future__ import annotations

from bbrlab_apps.study.commands import catalogue, compare, plot, show, sweep
