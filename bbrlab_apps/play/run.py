"""One play: a guest in real time with a prompt, and a result folder like any run's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.experiment import iperf3_library
from bbrlab.experiment.machine import process
from bbrlab.experiment.plan import Plan, make_plan
from bbrlab.experiment.report import Report
from bbrlab.kernel.own import own_of
from bbrlab.measure.checks.check import entry_of, not_checked
from bbrlab.measure.summary import PlaySummary
from bbrlab.run.capture import NO_CAPTURE, Capture, add_capture, write_captures
from bbrlab.run.compatibility import check_parameters, kernel_for
from bbrlab.run.evaluate import evaluate
from bbrlab.run.guest import Machine, Progress, run_guest, write_inputs
from bbrlab.run.manifest import manifest_of
from bbrlab.run.output import LOG, PLAYED, PROMPT_FILES, PROMPT_LOG, result_folder, workspace, write_results
from bbrlab.run.run import check_seed
from bbrlab.scenario.point import Point
from bbrlab_apps.play.node_files import keep_files
from bbrlab_apps.play.playable import RATE_MBIT_MAX, RTT_MS_MAX, playable
from bbrlab_apps.play.played import Played, played_text, read_events
from bbrlab_apps.play.prompt_link import PromptLink

BACKEND = "play"  # what a result says of it: UML, in real time, steered by hand


@dataclass(frozen=True)
class Player:
    """Whoever plays."""

    link: PromptLink
    stop: threading.Event  # set to end it at once, with nothing kept
    # Called with the folder to which the guest writes, before it starts, and what it is to play
    on_begin: Callable[[Path, Played], None]
    on_progress: Progress  # called with (verb, text) as the guest goes on
    transcript: Callable[[], str]  # the text of the prompt so far, for prompt.log


def plan_play(point: Point, seed: int, ccas: dict[str, str], modules: dict[str, str]) -> tuple[Point, Plan]:
    """The point as it is played, and the guest's plan. UserError if it cannot be played."""
    played = playable(point, seed)
    plan = make_plan(played, seed, ccas, virtual=False, modules=modules)
    plan.content["prompt"] = {
        "ccas": ccas,
        "rate_mbit_max": RATE_MBIT_MAX,
        "rtt_ms_max": RTT_MS_MAX,
        "network_rtt_hosts": [h["name"] for h in plan.content["hosts"] if h["sends"] and h["network_rtt"]],
    }
    plan.content["changes"] = plan.content["changes"][:-1]  # the last one only stands for what may be set
    return played, plan


def play_point(
    point: Point,
    seed: int,
    out: Path,
    player: Player,
    *,
    kernel_name: str | None = None,
    sources: Sequence[Path] = (),
    watchdog_s: float = process.WATCHDOG_S,
    capture: Capture = NO_CAPTURE,
) -> PlaySummary:
    """Let somebody play one point, and keep what was measured.

    UserError if it cannot be played, or the guest fails. process.Stopped if ``player.stop`` was set.

    Args:
        seed: of the drawn RTTs and the guest's entropy.
        out: result folder; gets what a run's has (run_point()), played.yaml, which is the play as a scenario, and prompt.log.
        player: whoever plays; called from this thread.
        kernel_name, sources, watchdog_s, capture: as run_point() has them.

    Returns:
        The content of summary.json; its ``events`` say what was changed when.
    """
    check_seed(seed)
    process.check_watchdog(watchdog_s)
    start = time.monotonic()
    with result_folder(out) as kept:
        own = own_of([flow.cca for flow in point.scenario.flows], kernel_name, sources)
        playable(point, seed)  # before a kernel is built for it
        kernel = kernel_for(kernel_name, "uml", own, lambda text: player.on_progress("stage", text))
        begun, plan = plan_play(point, seed, kernel.ccas, kernel.modules)
        check_parameters(begun, kernel)
        add_capture(plan.content, begun, capture)
        marks: dict[str, float] = {}
        try:
            with workspace(kept) as scratch:
                folder = write_inputs(scratch, plan)
                player.on_begin(folder, Played(begun.scenario, plan))
                ready = time.monotonic()

                def begin() -> None:
                    marks["waiting"] = time.monotonic() - ready  # for a core: no time that the play takes
                    kept.begin()

                machine = Machine("uml", kernel, own, iperf3_library.library_folder(), seed, watchdog_s, False,
                                  player.on_progress, player.link, player.stop, begin)  # fmt: skip
                run_guest(machine, scratch, begun, plan, out / LOG)
                start += marks["waiting"]
                marks["guest"] = time.monotonic() - start
                played = Played(begun.scenario, plan)
                for event in read_events(folder)[0]:
                    played.add(event)
                if not played.transfers:
                    raise UserError(f"{point.scenario.name}: no flow was started, so there is nothing to keep")
                report: Report = files.read_json(folder / "report.json")
                result, as_played = played.as_point(report["duration_ns"]), played.as_plan(report["duration_ns"])
                measured, tables = evaluate(result, seed, BACKEND, as_played, kernel, folder)
                if played.others:
                    detail = f"commands that may have changed anything: {'; '.join(played.others)}"
                    measured["checks"].append(entry_of(not_checked("other_commands", 0, detail, len(played.others))))
                summary: PlaySummary = {**measured, "events": played.events}
                marks["evaluate"] = time.monotonic() - start - marks["guest"]
                files.write_text(out / PLAYED, played_text(result, played))
                files.write_text(out / PROMPT_LOG, player.transcript())
                for words in keep_files(folder, out):
                    player.on_progress("stage", f"{PROMPT_FILES}: left out: {words}")
                manifest = manifest_of(result, seed, BACKEND, as_played, kernel, folder)
                captures = write_captures(out, folder, plan.content, report, report["duration_ns"])
                write_results(out, summary, tables, manifest, marks, start, captures)
                return summary
        finally:
            player.link.close()
