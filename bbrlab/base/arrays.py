"""The type of NumPy arrays in signatures; docstrings give shape and unit."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
