"""The one exception that a user is meant to see, and what a process of ours that failed has told."""

import re
from pathlib import Path

WORD_MAX = 5000  # characters of a word in a message: more than any path has
LINE_MAX = 20_000  # of a line
SHOWN = 200  # of what is longer


class UserError(Exception):
    """Something that the user can put right. The text says what, where, and what to do; it is shown without traceback.

    What a file says is cut: a word longer than any path, a line longer than anybody reads.
    """

    def __init__(self, text: str):
        super().__init__(re.sub(rf"\S{{{WORD_MAX},}}|[^\n]{{{LINE_MAX},}}", _cut, text))


class DamagedFile(UserError):
    """A file of ours that is missing, cut off, or has not what it must have; ``reason``: what is wrong with it."""

    def __init__(self, path: Path, reason: str, remedy: str = ""):
        super().__init__(f"{path}: {reason}; {remedy}" if remedy else f"{path}: {reason}")
        self.path, self.reason = path, reason


def _cut(match: re.Match[str]) -> str:
    return f"{match[0][:SHOWN]}... ({len(match[0])} characters)"


TOLD = "bbrlab: "  # how the command line begins a message


def why_it_failed(errors: str, status: int) -> str:
    """Why a ``bbrlab`` process failed, in one line.

    Args:
        status: that it ended with; told if it said nothing.

    Returns:
        Its first message; without one the last line, which in a traceback names the exception.
    """
    lines = errors.strip().splitlines()
    message = next((line.removeprefix(TOLD) for line in lines if line.startswith(TOLD)), "")
    return message or (lines[-1] if lines else f"status {status}")
