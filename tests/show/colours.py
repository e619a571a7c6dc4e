"""Colours as people see them, those with red-green blindness among them, and how far two are apart."""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array

# Machado, Oliveira and Fernandes 2009, severity 1: of linear RGB.
MACHADO = {
    "normal": np.eye(3),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
}  # fmt: skip
_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])
_WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str | tuple[int, ...]) -> Array:
    """#rrggbb, or red, green and blue of 0 to 255, as linear RGB."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)] if isinstance(colour, str) else colour[:3]
    of_one = np.array(parts) / 255
    return np.where(of_one <= 0.04045, of_one / 12.92, ((of_one + 0.055) / 1.055) ** 2.4)


def lab(colour: Array) -> Array:
    """Linear RGB in CIELAB, in which equal distances look about equal."""
    xyz = _XYZ @ np.clip(colour, 0, 1) / _WHITE
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(one: str, other: str, vision: str = "normal") -> float:
    """The distance of two colours (#rrggbb) in CIELAB, in somebody's vision: from 10 on they are told apart at a glance."""
    of_one, of_other = (lab(MACHADO[vision] @ linear(colour)) for colour in (one, other))
    return float(np.linalg.norm(of_one - of_other))
