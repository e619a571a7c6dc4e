"""One file for each point, for the workflow's jobs."""

from __future__ import annotations

from pathlib import Path

from bbrlab.base.yaml_files import read_yaml
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point


def read_point(path: Path) -> Point:
    """The point that write_points() wrote."""
    content = read_yaml(path)
    return Point(validate(content["scenario"], str(path)), content["values"])
