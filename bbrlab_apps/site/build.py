"""Builds the site: sources of all pages in a folder aside, Sphinx over them, and the whole put in its place."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import files, outputs, paths
from bbrlab.base.errors import UserError
from bbrlab.results.figures import figures_at
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
        _write_sources(findings, source)
        warnings = _sphinx(source, aside / "html", aside / "doctrees", looks, progress)
        for left_out in [path for pattern in _LEFT_OUT for path in (aside / "html").glob(pattern)]:
            left_out.unlink()
        outputs.list_made(aside / "html")
        files.put_folder(aside / "html", out)
    return warnings


def executed_notebook(name: str, results: Path, scale: str) -> Path | None:
    """The executed notebook of a paper or of models: of a campaign, else as ``bbrlab site --execute`` left it; None if there is none."""
    own = paths.results_folder()
    places = [results / scale]
    if results.absolute() in (own.absolute(), paths.SHIPPED.absolute()):
        places.append(own / "pages" / scale)
    return next((path for place in places if (path := place / f"{name}.ipynb").exists()), None)


def notebook_files(findings: Findings) -> dict[str, Path]:
    """{name: executed notebook} of those that are there."""
    which = findings.shown
    executed = {n: executed_notebook(n, which.results, which.scale) for n in (*findings.papers, *OF_MODELS, OVERVIEW)}
    return {name: path for name, path in executed.items() if path is not None}


def missing_notebooks(scale: str) -> list[str]:
    """Notebooks of what is shown of a scale that were not executed."""
    which = shown_results(scale)
    papers = dict.fromkeys(f.id.split("/")[0] for f in figures_at(which.scale, []) if (which.results / which.scale / f"{f.id}.parquet").exists())  # fmt: skip
    names = [name for name in (*papers, *OF_MODELS, OVERVIEW) if (paths.ROOT / "notebooks" / f"{name}.ipynb").exists()]
    return [name for name in names if executed_notebook(name, which.results, which.scale) is None]


def _write_sources(findings: Findings, source: Path) -> None:
    """Every page's source, and the files that they show."""
    executed = {name: read_notebook(path) for name, path in notebook_files(findings).items()}
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
    trust = documents.named(pages, "trust")
    entries = ["Papers <papers/index>", "Statements <statements>", "Models <models>", "Method <method>", "Runs <runs>"]
    entries += [f"Trust </{trust.with_suffix('')}>"] if trust else []
    entries += ["Limitations </LIMITATIONS>", "Docs </docs/README>"]
    cards = [(str(trust.with_suffix("")), "Trust", "What was predicted before anyone here had seen the measurements.")] if trust else []  # fmt: skip
    cards += [("LIMITATIONS", "Limitations", "What testbeds have and virtual time has not."),
              ("docs/README", "Documentation", "Set it up, write a scenario, add a paper, an algorithm or a claim.")]  # fmt: skip
    linked = (Path("data/README.md"), *(documents.named(pages, s) for s in ("verdicts", "bbr", "architecture", "results", "measured")))  # fmt: skip
    texts |= {
        "index": front_page(findings, titles, cards, entries),
        "papers/index": papers_page(findings, titles),
        "statements": statements_page(findings, titles),
        "models": models_page(findings, [f"notebooks/{n}" for n in OF_MODELS if n in executed], documents.named(pages, "models")),
        "method": method_page({documents.title_of(p): p for p in linked if p in pages}),
        "runs": runs_page(findings),
        **studies_pages(findings),
    }  # fmt: skip
    others = [p for p in pages if p not in (documents.INDEX, trust, Path("LIMITATIONS.md"))]
    texts["docs/README"] = (source / documents.INDEX).read_text(encoding="utf-8") + documents.contents(others)
    for name, text in texts.items():
        path = source / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _titles(findings: Findings) -> dict[str, str]:
    """{paper: its title}: of its notebook."""
    titles = {}
    for paper in findings.papers:
        path = paths.ROOT / "notebooks" / f"{paper}.ipynb"
        titles[paper] = title_of(read_notebook(path), paper) if path.exists() else paper
    return titles


def _lead(paper: str) -> str:
    """What a paper is and which of its figures are here (Markdown): of its notebook; empty without one."""
    path = paths.ROOT / "notebooks" / f"{paper}.ipynb"
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
