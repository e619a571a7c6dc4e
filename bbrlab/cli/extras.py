"""Libraries that only some commands need: extras of pyproject.toml, which the core installs without."""

from __future__ import annotations

# {extra: its modules that bbrlab imports}. They are imported where they are needed, never at the head of a module that other commands load.
EXTRAS = {
    "archive": ("rocrate",),
    "notebooks": ("IPython", "jupyter_client", "nbconvert", "nbformat", "papermill", "traitlets"),
    "play": ("textual", "textual_plot"),
    "site": ("nh3", "sphinx"),
}


def why_not_imported(error: ModuleNotFoundError, command: str) -> str | None:
    """What a user is told whose environment lacks an extra; None if the module belongs to none, which is a fault."""
    module = (error.name or "").split(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules:
            return f'{command} needs {module.replace("_", "-")}: pip install "bbrlab[{extra}]"'
    return None
