"""What of the documentation is made: ``python -m docs._make`` makes all of it anew, and so does ``make format``.

Each module here has ``pages()``: {file: its text as it should be}. It is no part of the package that is installed.
"""

MODULES = (
    "metrics", "reference", "rubric", "readme", "outcomes", "verdict_changes", "measured", "beside_google", "nine_panels", "eight_flows", "crosschecks",
    "artifact_statements", "citation", "binder", "traces",
)  # fmt: skip
