"""Output of a running campaign: one line of progress, and errors. A logger plugin of Snakemake's.

Snakemake finds it as ``snakemake_logger_plugin_bbrlab``; profiles/default chooses it. Its own five lines for each job
are in .snakemake/log.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.text import Text
from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from bbrlab.base.console import Console
from bbrlab.base.errors import UserError
from bbrlab.campaign import progress

EVERY_S = 60  # between two lines of progress where there is no terminal
# Said of every checkpoint of a dry run, after its job's lines; without these (quiet: rules) it says nothing.
ONCE_PER_CHECKPOINT = "DAG of jobs will be updated"
# Snakemake's plain words that say nothing to a person who waits; all others are shown.
CHATTER = (
    "Assuming unrestricted", "Building DAG", "Complete log", "Config file", ONCE_PER_CHECKPOINT, "Elapsed time",
    "Execute ", "host:", "Select jobs", "Singularity containers", "Updating checkpoint", "Using shell", "None",
)  # fmt: skip


class LogHandler(LogHandlerBase):
    """Snakemake's log on a terminal or in a file."""

    # What the interface asks: it writes to standard error, and chooses itself what to show, and how.
    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        settings: Any = self.common_settings
        self.console = Console(stderr=True, soft_wrap=True)
        self.wording = DefaultFormatter(settings.quiet, settings.show_failed_logs)
        self.jobs: dict[int, dict[str, Any]] = {}
        self.texts: list[Path] = []
        self.steps = ""
        self.said_s = time.monotonic()
        self.live: Live | None = None
        # Who asks what would be done, or for details, gets Snakemake's own words.
        self.wordy: ColorizingTextHandler | None = None
        if settings.dryrun or settings.verbose or settings.debug_dag or settings.printshellcmds:
            self.wordy = ColorizingTextHandler(
                nocolor=settings.nocolor, stream=sys.stdout if settings.stdout else sys.stderr
            )
            self.wordy.setFormatter(self.wording)
            self.wordy.addFilter(
                DefaultFilter(
                    settings.quiet, settings.debug_dag, settings.verbose, settings.dryrun, settings.printshellcmds
                )
            )

    def emit(self, record: logging.LogRecord) -> None:
        """Take in one event. Snakemake calls this in a thread of its own, one event at a time."""
        try:
            if self.wordy is not None:
                if not str(record.msg).startswith(ONCE_PER_CHECKPOINT):
                    self.wordy.handle(record)
            else:
                self._take(record)
        except Exception:  # a bug here must not stop a campaign
            self.handleError(record)

    def _take(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        fields = record.__dict__
        if event == LogEvent.JOB_INFO:
            self.jobs[fields["jobid"]] = {key: fields[key] for key in ("rule_name", "wildcards", "output")}
            self._show_live()
        elif event == LogEvent.JOB_FINISHED:
            self._finished(self.jobs.pop(fields["job_id"], None))
        elif event == LogEvent.PROGRESS:
            self.steps = f"steps {fields['done']} of {fields['total']}"
        elif event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR) or record.levelno >= logging.WARNING:
            self._say(self.wording.format(record), "red" if record.levelno >= logging.ERROR else "yellow")
        elif event is None and record.levelno >= logging.INFO and not str(record.msg or "None").startswith(CHATTER):
            self._say(str(record.msg))
        self._say_now_and_then()

    def _finished(self, job: dict[str, Any] | None) -> None:
        if job is None:
            return
        self.texts += [Path(path) for path in job["output"] if path.endswith(".txt")]
        if progress.current is None:
            return
        place = job["wildcards"]
        if job["rule_name"] == "run":
            try:
                summary = json.loads(Path(job["output"][0]).read_text(encoding="utf-8"))
            except OSError:  # it is in a storage (profiles/kubernetes)
                summary = {}
            key = (f"{place['paper']}/{place['figure']}", place["label"], int(place["seed"]))
            progress.current.finish(key, summary.get("ok", True))
        elif job["rule_name"] == "seeds":
            from bbrlab.results.seeds import read_seeds  # only here: every Snakemake imports this module

            try:
                seeds = read_seeds(Path(job["output"][0]))
            except UserError:
                return  # the workflow says so itself
            progress.current.plan_seeds(f"{place['paper']}/{place['figure']}", seeds)

    def _line(self) -> str:
        now = progress.current
        if now is None or not now.planned or len(now.done) == len(now.planned):
            return self.steps
        return now.words()

    def __rich__(self) -> Text:
        return Text(self._line(), no_wrap=True, overflow="ellipsis", style="cyan")

    def _show_live(self) -> None:
        if self.live is None and self.console.is_terminal:
            self.live = Live(self, console=self.console, transient=True, refresh_per_second=2)
            self.live.start()

    def _say_now_and_then(self) -> None:
        if not self.console.is_terminal and time.monotonic() - self.said_s > EVERY_S and self._line():
            self._say(self._line())
            self.said_s = time.monotonic()

    def _say(self, words: str, style: str = "") -> None:
        self.console.print(Text(words, style=style))

    def close(self) -> None:
        """The end: what was done, and the texts that steps wrote for reading (``.txt``): the scorecard, verdicts."""
        if self.live is not None:
            self.live.stop()
            self.live = None
        if self.wordy is None and progress.current is not None and progress.current.done:
            self._say(progress.current.summary())
        for path in filter(Path.is_file, self.texts):  # others are in a storage (profiles/kubernetes)
            self._say(path.read_text(encoding="utf-8").rstrip("\n"))
        self.texts, progress.current = [], None
        super().close()
