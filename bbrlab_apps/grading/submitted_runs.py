"""The result folders of a submission: their points, seeds and kernels, and whether hashes, samples and numbers agree."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

from pydantic import BaseModel, ConfigDict, Field
from yaml import YAMLError

from bbrlab.base import files
from bbrlab.base.arrays import Array
from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.base.yaml_files import dump_yaml, parse_yaml
from bbrlab.experiment import iperf3_library
from bbrlab.experiment.plan import Plan, make_plan
from bbrlab.experiment.plan_types import Trace
from bbrlab.kernel.built import Kernel, describe_kernel, without_build
from bbrlab.measure import metrics
from bbrlab.measure.summary import Measured
from bbrlab.results.digest import summary_digest
from bbrlab.results.nested import MISSING, Difference, differences, in_words, is_number, leaves
from bbrlab.results.run_folder import RunFolder, checked_summary
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.manifest import always_loaded, git_state, guest_code, plan_digest
from bbrlab.run.output import ACKS, LOG, MANIFEST, SAMPLES, SUMMARY
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab_apps.grading.personal import Personal
from bbrlab_apps.grading.recount import can_recount, checks_of, recounted
from bbrlab_apps.grading.rubric import Rubric
from bbrlab_apps.grading.submission import NAMED_MAX, RESULTS, YAML_BYTES, Submission, read_strict_json, shown, some_of
from bbrlab_apps.grading.submitted_samples import fingerprint_of, impossible, read_samples, table_digest
from bbrlab_apps.grading.submitted_scenario import differing, identity, safe_scenario

RUN_FILES = (SUMMARY, MANIFEST, SAMPLES, LOG, ACKS)
JSON_BYTES = 4 << 20
CLOSE = 1e-8  # numbers of a summary have nine decimals
EDITED_SAMPLES, EDITED_SUMMARY, EDITED_MANIFEST = "edited samples", "edited summary", "edited manifest"
OTHER_KERNEL, OTHER_VERSION = "results of another kernel", "results of another version of bbrlab"
COPIED, OTHERS_RUN = "copied run", "another student's run"


class SubmittedRun(TypedDict):
    """What a submission's result folder holds."""

    name: str
    point: int  # index among the points of the figure; -1 if it is none of them
    seed: int  # by its manifest; -1 if it has none
    scenario: dict[str, Any]  # of its manifest, checked, to repeat it
    wrong: list[str]  # why it does not count, in words; empty if it does
    notes: list[str]
    flags: list[tuple[str, str]]  # (kind, text) for the teacher: EDITED_SAMPLES and so on
    sha256: str  # of samples.parquet
    digest: str  # of the values in it (table_digest())
    fingerprint: str  # of some of them (fingerprint_of())
    summary_sha256: str  # of the measured part of its summary (results/digest.py)
    summary: dict[str, Any]  # the part that tables are made of, with recounted numbers


class _Kernel(BaseModel):
    """The kernel in manifest.json."""

    model_config = ConfigDict(strict=True, extra="ignore")
    name: str
    release: str
    build_id: str
    key: str


class _Manifest(BaseModel):
    """The fields of manifest.json that grading reads."""

    model_config = ConfigDict(strict=True, extra="ignore")
    scenario: dict[str, Any]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    backend: str
    kernel: _Kernel
    plan_sha256: str
    guest_code_sha256: dict[str, str]
    outputs_sha256: dict[str, str]
    report: dict[str, Any]
    source: dict[str, Any] = {}
    conditions: str = CONDITIONS[0]


@dataclass(frozen=True)
class _SubmittedFolder(RunFolder):
    """A run's folder in a submission, whose files may lie anywhere and are read with limits."""

    files: Mapping[str, Path] = field(default_factory=dict)

    def content(self, name: str, path: Path) -> Any:
        """The content of a JSON file: finite numbers only, and at most JSON_BYTES."""
        return read_strict_json(path, JSON_BYTES, name)

    def file(self, name: str) -> Path | None:
        """The path of one of its files; None if the submission lacks it."""
        return self.files.get(name)


@dataclass
class _Findings:
    """A result folder's files, and what was found out about it."""

    name: str
    files: dict[str, Path]
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    flags: list[tuple[str, str]] = field(default_factory=list)

    def flag(self, kind: str, text: str) -> None:
        """Note that somebody changed something: the run does not count, and the teacher sees it."""
        self.flags.append((kind, text))
        self.wrong.append(f"{kind}: {text}")


def runs_of(
    submission: Submission,
    rubric: Rubric,
    personal: Personal,
    kernel: Kernel,
    points: list[Point],
    incomplete: list[str],
) -> list[SubmittedRun]:
    """Every result folder, by name."""
    folders: dict[str, dict[str, Path]] = {}
    for name, path in sorted(submission.files.items()):
        folder, _, file = name.rpartition("/")
        if folder.split("/")[0] == RESULTS and file in RUN_FILES:
            folders.setdefault(folder, {})[file] = path
    if not folders:
        incomplete.append(submission.missing_runs((SUMMARY, MANIFEST, SAMPLES)))
    if len(folders) > rubric.limits.runs:
        incomplete.append(f"{RESULTS}/ has {len(folders)} runs; only the first {rubric.limits.runs} are looked at")
    index_of = {identity(point): index for index, point in enumerate(points)}
    runs = [
        _run(_Findings(n, f), points, index_of, personal, kernel)
        for n, f in list(folders.items())[: rubric.limits.runs]
    ]
    taken: dict[tuple[int, int], str] = {}
    for run in runs:
        place = (run["point"], run["seed"])
        if run["point"] >= 0 and not run["wrong"]:
            if place in taken:
                run["wrong"].append(f"the same run is in {taken[place]}")
            taken.setdefault(place, run["name"])
    first: dict[str, str] = {}
    for run in runs:
        if run["digest"] and first.setdefault(run["digest"], run["name"]) != run["name"]:
            run["notes"].append(
                f"has the same values as {first[run['digest']]}; of some conditions every seed gives the same"
            )
    return runs


def _run(
    folder: _Findings, points: list[Point], index_of: Mapping[str, int], personal: Personal, kernel: Kernel
) -> SubmittedRun:
    """One result folder, checked."""
    handed = _SubmittedFolder(Path(folder.name), files=folder.files)
    run: SubmittedRun = {
        "name": shown(folder.name), "point": -1, "seed": -1, "scenario": {}, "wrong": folder.wrong, "notes": folder.notes,
        "flags": folder.flags, "sha256": "", "digest": "", "fingerprint": "", "summary_sha256": "", "summary": {},
    }  # fmt: skip
    missing = [n for n in (SUMMARY, MANIFEST, SAMPLES) if n not in folder.files]
    if missing:
        folder.wrong.append(f"{', '.join(missing)} missing")
        return run
    part = MANIFEST
    try:
        manifest = handed.manifest_as(_Manifest)
        run["seed"] = manifest.seed
        if len(json.dumps(manifest.scenario)) > YAML_BYTES:  # before it is checked, which takes time
            raise UserError(
                f"{MANIFEST}: its scenario has more than {YAML_BYTES / 1e3:g} kB, which is too much for one"
            )
        (point,) = safe_scenario(manifest.scenario, MANIFEST, 1)
        run["point"] = index_of.get(identity(point), -1)
        if run["point"] < 0:
            texts = [shown(text, 200) for text in differing(point, points)]
            folder.wrong.append(
                f"its conditions are not those of a point that is asked for: {'; and '.join(texts[:NAMED_MAX])}"
            )
        _check_identity(folder, run, manifest, personal, kernel)
        part = SAMPLES
        run["sha256"] = files.sha256(folder.files[SAMPLES])
        if run["sha256"] != manifest.outputs_sha256.get(SAMPLES):
            folder.flag(EDITED_SAMPLES, f"{SAMPLES} is not the file whose SHA-256 is in {MANIFEST}")
        columns = read_samples(folder.files[SAMPLES], point)
        run["digest"], run["fingerprint"] = table_digest(columns), fingerprint_of(columns)
        if run["point"] < 0:  # of other conditions no plan is made, which could take any time
            return run
        part = MANIFEST
        plan, point = _plan(folder, manifest, point, kernel)
        run["scenario"] = _can_be_made_again(point.scenario.model_dump(exclude_unset=True))
        part = SAMPLES
        for problem in impossible(point.scenario, plan, columns):
            folder.flag(EDITED_SAMPLES, f"{SAMPLES}: no run can have measured this: {problem}")
        part = SUMMARY
        summary = handed.raw_summary
        if not isinstance(summary, dict):
            raise UserError(f"{SUMMARY}: is no summary of a run")
        run["summary_sha256"] = summary_digest(summary)
        content = _summary(folder, summary, manifest, point, plan, columns) | {"kernel": describe_kernel(kernel)}
        checked_summary(content, handed.path / SUMMARY)  # of flows that end early it has the student's own numbers
        run["summary"] = content
        _acks(folder, manifest)
    except DamagedFile as error:
        folder.wrong.append(shown(f"{error.path.name}: {error.reason}", 300))
    except UserError as error:
        folder.wrong.append(shown(str(error), 300))
    except Exception as error:  # of any kind: it costs this run only, and the rest is graded
        folder.wrong.append(f"{part}: cannot be read safely ({shown(f'{type(error).__name__}: {error}')})")
    return run


def _check_identity(
    folder: _Findings, run: SubmittedRun, manifest: _Manifest, personal: Personal, kernel: Kernel
) -> None:
    """Check that a run is of an assigned point and seed, and of the assignment's kernel."""
    if run["point"] >= 0 and manifest.seed not in personal.seeds:
        folder.wrong.append(f"seed {manifest.seed} is not asked for (yours: {', '.join(map(str, personal.seeds))})")
    if manifest.backend != "uml":
        folder.wrong.append(f"was run with backend {shown(manifest.backend)!r}; asked for is uml, virtual time")
    expected: Mapping[str, Any] = describe_kernel(kernel)
    named = manifest.kernel.model_dump()
    if any(value != expected[k] for k, value in without_build(named).items()):
        text = f"{shown(named['name'])} {shown(named['release'])} (build {shown(named['key'])}, {shown(named['build_id'])})"
        folder.flag(
            OTHER_KERNEL,
            f"{text}; asked for is {expected['name']} {expected['release']} (build {expected['key']}, {expected['build_id']})",
        )
    expected_code, submitted_code = guest_code({}), always_loaded(manifest.guest_code_sha256)
    if expected_code != submitted_code:
        changed = sorted(
            n for n in expected_code.keys() | submitted_code if expected_code.get(n) != submitted_code.get(n)
        )
        folder.flag(
            OTHER_VERSION,
            f"the guest's code is not this version's ({some_of(changed)}){_commits(manifest)}; get the version that is graded with, "
            "and run it again",
        )
    elif manifest.conditions != CONDITIONS[-1]:
        folder.flag(
            OTHER_VERSION,
            f"its version had other conditions ({shown(manifest.conditions)}){_commits(manifest)}; get the version that is graded "
            "with, and run it again",
        )


def _commits(manifest: _Manifest) -> str:
    """The commits that made a run and that grade it, in words, if they differ: who of the two must update."""
    made_by, this_commit = manifest.source.get("commit"), git_state()["commit"]
    return (
        f"; it was made by commit {shown(str(made_by), 12)}, this is {this_commit[:12]}"
        if made_by and this_commit and made_by != this_commit
        else ""
    )


def _plan(folder: _Findings, manifest: _Manifest, point: Point, kernel: Kernel) -> tuple[Plan, Point]:
    """The guest's plan and the point that gives it; the manifest must have the hash of that plan.

    With another version or kernel, which are flagged already, the plan differs without anybody's doing.
    """
    preload = f"/run/lib/{iperf3_library.LIBRARY}"
    traces: tuple[Trace, ...] = ("", "acks")  # with --trace-acks, and the same with --trace-changes
    for variant, trace in itertools.product((point, _without_defaults(point)), traces):
        plan = make_plan(variant, manifest.seed, kernel.ccas, preload=preload, trace=trace, modules=kernel.modules)
        if plan_digest(plan.content) == manifest.plan_sha256:
            return plan, variant
    text = f"plan_sha256 of {MANIFEST} is not that of its scenario and seed"
    if {OTHER_KERNEL, OTHER_VERSION} & {kind for kind, _ in folder.flags}:
        folder.wrong.append(text)
    else:
        folder.flag(EDITED_MANIFEST, text)
    return plan, variant


def _can_be_made_again(scenario: dict[str, Any]) -> dict[str, Any]:
    """A scenario that read from a file is the same. UserError for another one: its run could not be repeated, and would count unproven."""
    try:
        same = parse_yaml(dump_yaml(scenario)) == scenario
    except (YAMLError, ValueError):  # a text with half a letter, a number of a thousand digits
        same = False
    if not same:
        raise UserError(f"{MANIFEST}: its scenario has texts or numbers that no scenario file can have")
    return scenario


def _without_defaults(point: Point) -> Point:
    """The point without ``sample_hz`` if it has the default, which a plan writes differently (10, not 10.0)."""
    content = point.scenario.model_dump(exclude_unset=True)
    if content.get("sample_hz") == type(point.scenario).model_fields["sample_hz"].default:
        del content["sample_hz"]
    return Point(validate(content, point.scenario.name), {})


def _summary(
    folder: _Findings, summary: dict[str, Any], manifest: _Manifest, point: Point, plan: Plan, columns: dict[str, Array]
) -> dict[str, Any]:
    """The part of a summary that tables are made of. Where samples and manifest say otherwise, the run is flagged."""
    scenario = point.scenario
    expected = {
        "seed": manifest.seed, "backend": manifest.backend, "virtual_s": scenario.duration_s,
        "window_s": list(scenario.window_s), "kernel": manifest.kernel.model_dump(),
    }  # fmt: skip
    problems = [*differences(summary, expected, close=CLOSE, only_second=True)]
    try:
        if can_recount(scenario):
            counted = dict(recounted(point, plan, columns))
            problems += differences(summary, counted, close=CLOSE, only_second=True)
        else:
            folder.notes.append("flows that end before the run does: only a run made again can show an edited summary")
            counted = _numbers(summary, len(scenario.flows))
    except (ValueError, KeyError, IndexError, TypeError, ArithmeticError) as error:
        raise UserError(f"{SAMPLES}: makes no sense as samples of a run ({shown(str(error))})") from None
    if not all(math.isfinite(value) for _, value in leaves(counted) if isinstance(value, float)):
        raise UserError(f"{SAMPLES}: gives numbers that are not finite")
    problems += _checked(folder, summary, manifest, point, plan, columns)
    if problems:
        text = "; ".join(
            f"{place} {'' if summary_value is MISSING else 'is '}{in_words(summary_value)}, its samples and manifest say {in_words(wanted)}"
            for place, summary_value, wanted in problems[:3]
        )
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        folder.flag(EDITED_SUMMARY, f"{SUMMARY}: {text}{more}{_commits(manifest)}")
    return {
        **{k: counted[k] for k in ("groups", "bottleneck", "jain_index")},
        "scenario": scenario.name, "paper": scenario.paper, "figure": scenario.figure, "values": point.values,
        "seed": manifest.seed, "backend": manifest.backend, "window_s": list(scenario.window_s), "flows": [], "checks": [],
        "ok": True, "virtual_s": scenario.duration_s, "wall_s": None,
    }  # fmt: skip


def _checked(
    folder: _Findings, summary: dict[str, Any], manifest: _Manifest, point: Point, plan: Plan, columns: dict[str, Array]
) -> list[Difference]:
    """How a summary's self-checks differ from those that samples and manifest give. A failed one in either makes the run not count."""
    submitted = summary.get("checks")
    if not isinstance(submitted, list) or not submitted or not all(isinstance(c, dict) for c in submitted):
        raise UserError(f"{SUMMARY}: has no self-checks")
    try:
        counted = checks_of(point.scenario, plan, manifest.report, columns)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError) as error:
        raise UserError(
            f"{MANIFEST}: its report makes no sense ({shown(f'{type(error).__name__}: {error}')})"
        ) from None
    remaining, problems = list(submitted), list[Difference]()
    for expected in counted:
        place = f"checks.{expected['name']}"
        check = next((c for c in remaining if c.get("name") == expected["name"]), None)
        if check is None:
            problems.append(Difference(place, MISSING, expected["measured"]))
            continue
        remaining.remove(check)
        keys = ("asked", "measured", "ok")  # not the words, which a version of the package may have put otherwise
        problems += differences(check, {key: expected[key] for key in keys}, place, close=CLOSE, only_second=True)  # type: ignore[literal-required]
    failed = {shown(str(c.get("name"))) for c in (*submitted, *counted) if c.get("ok") is False}
    strange = [shown(str(c.get("name"))) for c in submitted if c.get("ok") not in (True, False, None)]
    problems += [Difference(f"checks.{name}.ok", "neither true, false nor null", None) for name in strange]
    if summary.get("ok") is not (not failed):
        problems.append(Difference("ok", summary.get("ok"), not failed))
    if failed:
        folder.wrong.append(f"failed its self-checks: {some_of(sorted(failed))}")
    return problems


def _acks(folder: _Findings, manifest: _Manifest) -> None:
    """Check that a table of ACKs, which is optional, is the run's."""
    if ACKS in folder.files and files.sha256(folder.files[ACKS]) != manifest.outputs_sha256.get(ACKS):
        folder.flag(EDITED_SAMPLES, f"{ACKS} is not the file whose SHA-256 is in {MANIFEST}")


def _numbers(summary: dict[str, Any], groups: int) -> dict[str, Any]:
    """Groups, bottleneck and Jain's index of a summary that cannot be recounted. UserError if they are not numbers."""
    measured = cast(Measured, summary)  # checked here
    try:
        if len(summary["groups"]) != groups:
            raise TypeError
        for group in summary["groups"]:
            values = [metric.of_group(group) for metric in metrics.GROUP.values()]
            if not all(v is None or is_number(v) for v in values) or not isinstance(group["cca"], str):
                raise TypeError
        if not all(m.of_run(measured) is None or is_number(m.of_run(measured)) for m in metrics.RUN.values()):
            raise TypeError
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{SUMMARY}: lacks metrics, or has some that are no numbers") from None
    return {k: summary[k] for k in ("groups", "bottleneck", "jain_index")}
