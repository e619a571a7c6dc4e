"""One file for each point, for the workflow's jobs."""

from __future__ import annotations

from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import read_yaml
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point


def read_point(path: Path, sources: tuple[Path, ...] = ()) -> Point:
    """The point that write_points() wrote. UserError if the file is not one of those.

    Args:
        sources: C files of algorithms of one's own that flows may have, beside those in kernels/cca/.
    """
    content = read_yaml(path)
    if not isinstance(content, dict) or not {"scenario", "values"} <= content.keys():
        raise UserError(f"{path}: is no point of a campaign; for a scenario file use: bbrlab run")
    return Point(validate(content["scenario"], str(path), folder=path.parent, sources=sources), content["values"])
