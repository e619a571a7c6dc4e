"""Builds the site: sources of all pages in a folder aside, Sphinx over them, and the whole put in its place."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bbrlab.base import files, outputs, paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.stages import stage_hash
from bbrlab.results.best_scale import figures_at_best_scale
from bbrlab.results.shipped import ShownResults
from bbrlab.show.findings import Findings, load_findings, shown_results
from bbrlab.show.verdicts import colours_css
from bbrlab_apps.site import documents
from bbrlab_apps.site.notebook_page import lead_of, notebook_page, read_notebook, title_of
from bbrlab_apps.site.pages import (
    front_page,
    method_page,
    models_page,
    paper_page,
    papers_page,
    runs_page,
    statements_page,
    studies_pages,
)

STATIC, TEMPLATES = (Path(__file__).parent / name for name in ("static", "templates"))
OVERVIEW, OF_MODELS = "overview", ("models", "burst")
TRUST = "docs/explanation/trust"  # which has a place of its own beside the others
# The pages that the page on the method leads to.
OF_METHOD = (
    "data/README.md", "docs/explanation/verdicts.md", "docs/explanation/bbr.md", "docs/explanation/architecture.md", "docs/reference/results.md",
    "docs/reference/measured.md",
)  # fmt: skip
INPUTS = ".inputs"  # the file beside an executed notebook that says what it was made of
# Patterns of files of no use to a reader; source maps of the theme would be a fifth of a site.
_LEFT_OUT = (".buildinfo", "objects.inv", "genindex.html", "_static/**/*.map")
_CHART = "bb-plot"  # pages with one get the library that draws it

Progress = Callable[[str, int, int], None]  # what is done with the pages, how many are done, of how many


def site_folder(scale: str) -> Path:
    """Where a site goes by default."""
    return paths.results_folder() / scale / "site"


def build_site(
    scale: str, out: Path | None = None, results: Path | None = None, *, progress: Progress | None = None
) -> list[str]:
    """Write the site of a scale, whole or not at all. Executes nothing of the results.

    UserError if there are no results, one of their files is not as it must be, or ``out`` has anything that is not of a site.

    Args:
        out: default: site_folder().
        results: a folder to take the results from and no other; default: one's own, else those that ship.
        progress: is called for each page that is read, and for each that is written.

    Returns:
        What Sphinx has to say of the pages, a line each; empty if all is well.
    """
    outputs.check_folder("--out", out)
    out = (out or site_folder(scale)).absolute()
    findings = load_findings(scale, results=results)
    with files.folder_aside(out) as aside:
        source, looks = aside / "source", aside / "looks"
        source.mkdir()
        looks.mkdir()
        (looks / "verdicts.css").write_text(colours_css(), encoding="utf-8")
        _write_sources(findings, source, scale)
        warnings = _sphinx(source, aside / "html", aside / "doctrees", looks, progress)
        for left_out in [path for pattern in _LEFT_OUT for path in (aside / "html").glob(pattern)]:
            left_out.unlink()
        outputs.list_made(aside / "html")
        files.put_folder(aside / "html", out)
    return warnings


def execute_notebooks(scale: str, say: Callable[[str], None]) -> None:
    """Execute the notebooks of what is shown of a scale that no campaign has executed, each again once what it was made of has changed."""
    from bbrlab.show.execute import execute_notebook

    which = shown_results(scale)
    names = _notebook_names(figures_at_best_scale(which))
    found = notebook_files(which, names, scale)
    for name, inputs in _inputs_of([name for name in names if name not in found], scale).items():
        say(f"notebook {name}")
        given = {"scale": scale} | ({"interactive": "no"} if name in OF_MODELS else {})
        execute_notebook(_notebook(name), _page(name, scale), given)
        files.write_text(_page(name, scale).with_suffix(INPUTS), inputs)


def notebook_files(which: ShownResults, names: Sequence[str], scale: str) -> dict[str, Path]:
    """{name: executed notebook}: of a campaign, else as execute_notebooks() left it, if what it was made of has not changed since.

    Args:
        scale: what was asked for; what ships instead may be of another.
    """
    campaigns = {name: which.results / which.scale / f"{name}.ipynb" for name in names}
    found = {name: path for name, path in campaigns.items() if path.exists()}
    if which.results.absolute() in (paths.results_folder().absolute(), paths.SHIPPED.absolute()):
        pages = {name: _page(name, scale) for name in names if name not in found}
        noted = {name: page.with_suffix(INPUTS) for name, page in pages.items()}
        left = {name: path.read_text(encoding="utf-8") for name, path in noted.items() if path.exists()}
        now = _inputs_of(list(left), scale)
        found |= {name: pages[name] for name in left if left[name] == now[name] and pages[name].exists()}
    return found


def _notebook_names(figures: Iterable[str]) -> list[str]:
    """The notebooks of the papers of some figures, of the models, and the overview."""
    names = (*dict.fromkeys(figure.split("/")[0] for figure in figures), *OF_MODELS, OVERVIEW)
    return [name for name in names if _notebook(name).exists()]


def _notebook(name: str) -> Path:
    return paths.ROOT / "notebooks" / f"{name}.ipynb"


def _page(name: str, scale: str) -> Path:
    return paths.results_folder() / "pages" / scale / f"{name}.ipynb"


def _inputs_of(names: Sequence[str], scale: str) -> dict[str, str]:
    """{notebook: what it would be made of now}: hashes of its cells, of code and data behind them, of what ships, and of one's own
    results that it may show, a line each."""
    if not names:
        return {}
    shared = [f"code {stage_hash('pages')}", *map(_hash_line, sorted(paths.SHIPPED.glob("*/manifest.json")))]
    own = paths.results_folder() / scale
    found = {}
    for name in names:
        of_all = name in (*OF_MODELS, OVERVIEW)
        patterns = ["**/*.parquet"] if of_all else [f"{name}/*.parquet", f"{name}.*.parquet", f"ns3/{name}.parquet"]
        tables = sorted(path for pattern in patterns for path in own.glob(pattern))
        tables += sorted((paths.results_folder() / "models").glob("**/*.parquet")) if of_all else []
        found[name] = "\n".join([*shared, *map(_hash_line, [_notebook(name), *tables])])
    return found


def _hash_line(path: Path) -> str:
    return f"{path} {files.sha256(path)}"


def _write_sources(findings: Findings, source: Path, scale: str) -> None:
    """Every page's source, and the files that they show."""
    names = _notebook_names(findings.figures)
    executed = {name: read_notebook(path) for name, path in notebook_files(findings.shown, names, scale).items()}
    titles = _titles(findings)
    pages = documents.write_documents(source)
    texts: dict[str, str] = {}
    (source / "notebooks").mkdir(exist_ok=True)
    for name, notebook in executed.items():
        title = f"{titles[name]} (notebook)" if name in titles else ""
        page = notebook_page(notebook, source / "notebooks", name, title=title)
        texts[f"notebooks/{name}"] = f"---\norphan: true\n---\n\n{page}"
    for paper in findings.papers:
        link = f"../notebooks/{paper}" if paper in executed else None
        texts[f"papers/{paper}"] = paper_page(findings, paper, titles[paper], _lead(paper), link)
    entries = ["Papers <papers/index>", "Statements <statements>", "Models <models>", "Method <method>", "Runs <runs>"]
    entries += [f"Trust </{TRUST}>", "Limitations </LIMITATIONS>", "Docs </docs/README>"]
    cards = [(TRUST, "Trust", "What was predicted before anyone here had seen the measurements."),
             ("LIMITATIONS", "Limitations", "What testbeds have and virtual time has not."),
             ("docs/README", "Documentation", "Set it up, write a scenario, add a paper, an algorithm or a claim.")]  # fmt: skip
    texts |= {
        "index": front_page(findings, titles, cards, entries),
        "papers/index": papers_page(findings, titles),
        "statements": statements_page(findings, titles),
        "models": models_page(findings, [f"notebooks/{n}" for n in OF_MODELS if n in executed]),
        "method": method_page({documents.title_of(page): page for page in map(Path, OF_METHOD)}),
        "runs": runs_page(findings),
        **studies_pages(findings),
    }  # fmt: skip
    others = [p for p in pages if p not in (documents.INDEX, Path(f"{TRUST}.md"), Path("LIMITATIONS.md"))]
    texts["docs/README"] = (source / documents.INDEX).read_text(encoding="utf-8") + documents.contents(others)
    for name, text in texts.items():
        path = source / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _titles(findings: Findings) -> dict[str, str]:
    """{paper: its title}: of its notebook."""
    titles = {}
    for paper in findings.papers:
        path = _notebook(paper)
        titles[paper] = title_of(read_notebook(path), paper) if path.exists() else paper
    return titles


def _lead(paper: str) -> str:
    """What a paper is and which of its figures are here (Markdown): of its notebook; empty without one."""
    path = _notebook(paper)
    return lead_of(read_notebook(path)) if path.exists() else ""


def _settings(looks: Path) -> dict[str, Any]:
    """Sphinx's configuration."""
    return {
        "project": "bbrlab",
        "extensions": ["myst_parser"],
        "myst_heading_anchors": 4,
        "myst_enable_extensions": [],
        "suppress_warnings": ["myst.header"],
        "html_theme": "pydata_sphinx_theme",
        "templates_path": [str(TEMPLATES)],
        "html_title": "bbrlab",
        "html_static_path": [str(STATIC), str(looks)],
        "html_css_files": ["verdicts.css", "site.css"],
        "highlight_language": "none",  # of a block that says none
        "html_copy_source": False,
        "html_show_sourcelink": False,
        "html_show_copyright": False,
        "html_show_sphinx": False,
        "html_permalinks_icon": "#",
        "html_sidebars": {
            name: []
            for name in (
                "index",
                "statements",
                "models",
                "method",
                "runs",
                "LIMITATIONS",
                "docs/explanation/trust",
                "papers/*",
                "studies/*",
                "notebooks/*",
            )
        },
        "html_context": {"default_mode": "auto"},
        "html_theme_options": {
            "logo": {"text": "bbrlab"},
            "navbar_end": ["theme-switcher"],
            "header_links_before_dropdown": 8,
            "show_prev_next": False,
            "show_nav_level": 1,
            "footer_start": [],
            "footer_end": [],
            "secondary_sidebar_items": ["page-toc"],
            "pygments_light_style": "a11y-high-contrast-light",
            "pygments_dark_style": "a11y-high-contrast-dark",
        },
    }


def _sphinx(source: Path, out: Path, doctrees: Path, looks: Path, progress: Progress | None) -> list[str]:
    """Run Sphinx; returns its warnings."""
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError

    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")  # so that equal sites are equal files
    warnings = io.StringIO()
    try:
        app = Sphinx(
            str(source), None, str(out), str(doctrees), "html", _settings(looks), status=None, warning=warnings
        )
        app.connect("html-page-context", _scripts)
        if progress:
            _report(app, progress)
        app.build(force_all=True)
    except SphinxError as error:
        raise UserError(f"the site could not be written: {error}") from None
    messages = re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue())
    return [line.replace(f"{source}/", "") for line in messages.splitlines() if line.strip()]


def _report(app: Any, progress: Progress) -> None:
    """Have Sphinx say how many pages it has read and written."""
    pages: set[str] = set()
    done = {"pages read": 0, "pages written": 0}

    def begin(app: Any, environment: Any, names: list[str]) -> None:
        pages.update(names)

    def step(what: str) -> None:
        done[what] += 1
        progress(what, done[what], len(pages))

    app.connect("env-before-read-docs", begin)
    app.connect("source-read", lambda app, name, text: step("pages read"))
    app.connect("html-page-context", lambda app, name, *rest: step("pages written") if name in pages else None)


def _scripts(app: Any, page: str, template: str, context: Mapping[str, Any], doctree: Any) -> None:
    """What a page loads besides the theme's."""
    body = str(context.get("body", ""))
    if _CHART in body:
        app.add_js_file("plotly-cartesian.min.js", loading_method="defer")
    if "bb-" in body:
        app.add_js_file("site.js", loading_method="defer")
