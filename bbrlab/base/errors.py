"""The one exception that a user is meant to see, and what a process of ours that failed has told."""


class UserError(Exception):
    """Something that the user can put right. The text says what, where, and what to do; it is shown without traceback."""


TOLD = "bbrlab: "  # how the command line begins a message


def why_it_failed(errors: str, status: int) -> str:
    """Why a ``bbrlab`` process failed, in one line.

    Args:
        errors: all of its standard error.
        status: that it ended with; told if it said nothing.

    Returns:
        Its first message; without one the last line, which in a traceback names the exception.
    """
    lines = errors.strip().splitlines()
    told = next((line.removeprefix(TOLD) for line in lines if line.startswith(TOLD)), "")
    return told or (lines[-1] if lines else f"status {status}")
