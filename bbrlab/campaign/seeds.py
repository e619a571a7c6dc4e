"""How many seeds each point of a figure has: the figure's trials, then more where claims need them, in rounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict
from bbrlab.campaign.figures import Figure

ROUNDS = 3  # the first, with the figure's trials, and two looks after which a point may get more


class _Seeds(Strict):
    """A file of seeds."""

    seeds: dict[str, Annotated[int, Field(ge=1)]]


def read_seeds(path: Path) -> dict[str, int]:
    """{point label: number of seeds} of a file of write_seeds(). UserError if it is not one."""
    try:
        return _Seeds.model_validate_json(path.read_text(encoding="utf-8")).seeds
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; `bbrlab seeds` writes it") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(
            f"{path}: {'.'.join(map(str, first['loc'])) or 'content'}: {first['msg']}; remove it, the workflow writes it anew"
        ) from None


def write_seeds(path: Path, seeds: dict[str, int]) -> None:
    """Write {point label: number of seeds}, whole or not at all."""
    files.write_json(path, {"seeds": dict(sorted(seeds.items()))})


def settled(figure: Figure, rounds: int, file_of: Callable[[int], Path]) -> Path | None:
    """The file that says how many seeds each point of a figure has when so many rounds are over.

    A round that asks for no more than the one before it is the last.

    Args:
        rounds: 1 to ROUNDS.
        file_of: the file of a round from 2 on; may raise what makes the workflow come back when it has it.

    Returns:
        None as long as it is the figure's trials.
    """
    path, before = None, {point.label: figure.trials for point in figure.points}
    for number in range(2, rounds + 1):
        now = read_seeds(file_of(number))
        if now == before:
            break
        path, before = file_of(number), now
    return path
