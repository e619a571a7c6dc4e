"""Commands that run no experiment: doctor, schema, check, forecast."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.cli.app import EXIT_MOVED, AsJson, Figures, ScaleName, app, print_json

if TYPE_CHECKING:
    from bbrlab.results.config import Config
    from bbrlab.scenario.point import Point


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine lacks, and how to get it."""
    from rich.text import Text

    from bbrlab.base.console import Console
    from bbrlab.cli.doctor import check_machine

    console, findings = Console(), check_machine()
    ok = not any(f.remedy for f in findings)
    if as_json:
        print_json({"ok": ok, "findings": [asdict(f) | {"ok": not f.remedy} for f in findings]})
    for f in findings if not as_json else ():
        mark = ("lack", "bold red") if f.remedy else ("ok  ", "green")
        console.print(Text.assemble(mark, f" {f.name}: {f.found}"), soft_wrap=True)
        if f.remedy:
            console.print(f"     -> {f.remedy}", soft_wrap=True)
    if not ok:
        raise typer.Exit(EXIT_MOVED)
    if not as_json:
        console.print("This machine can run bbrlab.")


CLAIMS_FILE = "claims.yaml"  # bbrlab.claims.load.FILE_NAME, without what that imports


@app.command()
def schema(
    kind: Annotated[
        str, typer.Argument(help="scenario, claims, rubric, kernels, own-kernels, config or container.")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of a kind of file: what config/schemas/ has for editors."""
    from bbrlab.cli.schemas import schema_of

    print_json(schema_of(kind))


@app.command()
def check(
    scenarios: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE.yaml...",
            help="Scenarios, rubrics, kernels, files of config/; those called claims.yaml are of claims.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check files that people write, claims against the scenarios, without running anything."""
    claims = [path for path in scenarios if path.name == CLAIMS_FILE]
    checked: list[dict[str, Any]] = []
    wrong: list[str] = []
    for files in (claims, *([path] for path in scenarios if path.name != CLAIMS_FILE)):
        found, problems = _look(files)
        checked += found
        wrong += problems
    if as_json and not wrong:
        print_json(checked)
    for one in checked if not as_json else ():
        typer.echo(f"{one['file']}: {SENTENCES[one['kind']].format_map(_Counted(one))}")
        for note in one.get("notes", []):
            typer.echo(f"  note: {note}")
    if wrong:
        raise UserError("\n".join(wrong))


def _look(files: list[Path]) -> tuple[list[dict[str, Any]], list[str]]:
    """What is in files of claims, or in one other file, and what is wrong: with files that are wrong together, what is with each."""
    try:
        return [_checked(path) for path in files if path.name != CLAIMS_FILE] or _claims_in(files), []
    except UserError as error:
        alone = [_look([path]) for path in files] if len(files) > 1 else []
        return [one for found, _ in alone for one in found], [w for _, wrong in alone for w in wrong] or [str(error)]


def _claims_in(files: list[Path]) -> list[dict[str, Any]]:
    """What is in files of claims, looked at together: an id may stand in one of them only."""
    if not files:
        return []
    from bbrlab.claims.load import claims_of, load_statements

    statements = load_statements(files)
    checked: list[dict[str, Any]] = []
    for path in files:
        own = [s for s in statements if s.paper == path.absolute().parent.name]
        checked.append({"file": path, "kind": "claims", "statements": len(own), "claims": len(claims_of(own))})
    return checked


SENTENCES = {
    "claims": "{statements}, {claims}",
    "scenario": "{id}, {points} x {trials}, {duration_s:g} s each; about {core_s} on one core",
    "rubric": "rubric {name}, {claims}, {questions}",
    "kernels": "{kernels}, {default} by default",
    "own-kernels": "{kernels} of your own",
    "config": "configuration of the workflow, scales {scales}",
    "container": "the container's image, on {base_image}",
}


class _Counted(dict[str, Any]):
    """What is in a file, its counts with their nouns and times in words: ``points`` is "1 point"."""

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if key == "core_s":
            from bbrlab.campaign.progress import span

            return span(value)
        return number_of(value, key.removesuffix("s")) if isinstance(value, int) else value


def _checked(path: Path) -> dict[str, Any]:
    """What is in a file that is no claims.yaml. UserError, which says what kind of file it was taken for."""
    kind = _kind_of(path)
    result: dict[str, Any] = {"file": path, "kind": kind}
    if kind == "scenario":
        from bbrlab.experiment.plan import check_room
        from bbrlab.results.config import load_config
        from bbrlab.results.figures import check_names
        from bbrlab.results.run_estimate import estimate_s
        from bbrlab.run.compatibility import check_parameter_names
        from bbrlab.scenario.load import at_scale, load_points, points_of
        from bbrlab.scenario.notes import notes_of

        loaded, points = load_points(path)
        check_parameter_names(points, str(path))
        _read_traffic(points)
        for point in points:
            check_room(point.scenario)
        if loaded.scales:
            check_names(loaded, load_config(), path)
        for scale in loaded.scales:
            scaled = at_scale(loaded, scale, path)
            if scaled is not None and scaled is not loaded:
                points_of(scaled, f"{path} (at scale {scale})")
        id = loaded.name if loaded.paper == "none" else f"{loaded.paper}/{loaded.name}"
        return result | {"id": id, "paper": loaded.paper, "name": loaded.name, "points": len(points), "trials": loaded.trials,
                        "duration_s": loaded.duration_s, "core_s": loaded.trials * sum(map(estimate_s, points)),
                        "notes": [*notes_of(points), *_about_parameters(points)]}  # fmt: skip
    if kind == "rubric":
        from bbrlab.kernel.specs import find_spec
        from bbrlab_apps.grading.load import load_rubric, notes_on

        rubric = load_rubric(path)
        find_spec(rubric.kernel, f"{path}: kernel ")
        return result | {
            "name": rubric.name,
            "claims": len(rubric.claims),
            "questions": len(rubric.questions),
            "notes": notes_on(rubric),
        }
    if kind == "kernels":
        from bbrlab.kernel.specs import check_recipes, load_specs

        specs = load_specs(path)
        check_recipes(specs.kernels, path)
        return result | {"kernels": len(specs.kernels), "default": specs.default}
    if kind == "own-kernels":
        from bbrlab.base import paths
        from bbrlab.kernel.specs import check_recipes, load_own, load_specs

        own = load_own(path, load_specs(paths.CONFIG / "kernels.yaml"))
        check_recipes(own, path)
        return result | {"kernels": len(own)}
    if kind == "config":
        from bbrlab.results.config import load_config

        config = load_config(path)
        _check_names_in(config, path)
        return result | {"scales": ", ".join(config.scales)}
    from bbrlab_apps.container.settings import load_settings

    return result | {"base_image": load_settings(path).base_image}


def _check_names_in(config: Config, path: Path) -> None:
    """UserError for a scale, a figure or a kernel that there is not."""
    from bbrlab.kernel.specs import find_spec
    from bbrlab.results.figures import figures_called, scenario_files

    if config.scale not in config.scales:
        raise UserError(f"{path}: scale {config.scale}: no such scale; scales has {', '.join(config.scales)}")
    find_spec(config.kernel, f"{path}: kernel ")
    for name in config.figures:
        try:
            figures_called(name, scenario_files())
        except UserError as error:
            raise UserError(f"{path}: figures: {error}") from None


def _read_traffic(points: list[Point]) -> None:
    """Read the files of short flows, as a run does, which a scenario only names. UserError as read_chunks()."""
    named = {flow.traffic.trace for point in points for flow in point.scenario.flows if flow.traffic} - {"model"}
    if named:
        from bbrlab.workload.chunks import read_chunks

        for file in sorted(named):
            read_chunks(Path(file))


def _about_parameters(points: list[Point]) -> list[str]:
    """What is to be said of the flows' parameters: those that the default kernel does not have, which another may; what could not be checked."""
    from bbrlab.kernel.built import get_kernel
    from bbrlab.run.compatibility import asks_for_l4s, check_parameters

    points = [p for p in points if asks_for_l4s(p.scenario) or any(flow.params for flow in p.scenario.flows)]
    if not points:
        return []
    try:
        kernel = get_kernel()
    except UserError as error:
        return [f"the flows' params are checked against a kernel that is built: {error}"]
    runnable = [point for point in points if all(flow.cca in kernel.ccas for flow in point.scenario.flows)]
    wrong = []
    for point in runnable:
        try:
            check_parameters(point, kernel)
        except UserError as error:
            wrong.append(f"does not run with the default kernel: {error}")
    if wrong:
        return list(dict.fromkeys(wrong))
    return (
        []
        if len(runnable) == len(points)
        else ["the flows' params are checked when they run: an algorithm is one of your own"]
    )


def _kind_of(path: Path) -> str:
    """Of which kind a file is: that which has most of its keys; a scenario if none has more than that."""
    from bbrlab.base.yaml_files import read_yaml

    content = read_yaml(path) if path.is_file() else None
    if not isinstance(content, dict) or {"network", "flows"} <= content.keys():
        return "scenario"
    from bbrlab.cli.schemas import MODELS

    return max(MODELS, key=lambda kind: len(content.keys() & MODELS[kind].model_fields.keys()))


@app.command()
def forecast(figures: Figures = None, scale: ScaleName = None, as_json: AsJson = False) -> None:
    """Show what a campaign would run: points, seeds, and how long it will take and how much disk it needs."""
    from bbrlab.campaign.forecast import forecast_of, show_forecast
    from bbrlab.campaign.planning import planned_figure
    from bbrlab.claims.load import claims_of, load_statements
    from bbrlab.results.figures import figures_at, scenario_files

    if file := next((Path(name) for name in figures or () if name.endswith((".yaml", ".yml"))), None):
        figure_id = next((id for id, path in scenario_files().items() if path == file.absolute()), None)
        meant = (
            f"did you mean {figure_id}?"
            if figure_id
            else f"bbrlab check {shlex.quote(str(file))} says how many points it has, and how long they take"
        )
        raise UserError(
            f"{file}: forecast takes PAPER/FIGURE, which is scenarios/PAPER/FIGURE.yaml, and no file; {meant}"
        )
    at_scale = figures_at(scale, figures or None)
    claims = claims_of(load_statements())
    chosen = [planned_figure(figure, claims) for figure in at_scale]
    if as_json:
        print_json([asdict(forecast_of(figure)) for figure in chosen])
        return
    show_forecast(chosen)
