"""Builds the site: sources of all pages in a folder aside, Sphinx over them, and the whole put in its place."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.results.figures import figures_at
from bbrlab.show import documents
from bbrlab.show import notebook_page as notebooks
from bbrlab.show import site_pages as front
from bbrlab.show.content import Content, read_content, shown_on_site
from bbrlab.show.paper_page import paper_page

STATIC = Path(__file__).parent / "static"
OVERVIEW, OF_MODELS = "overview", ("models", "burst")
_LEFT_OUT = (".buildinfo", "objects.inv", "genindex.html")  # of no use to a reader
_CHART = "bb-chart"  # pages with one get the library that draws it


def site_folder(scale: str) -> Path:
    """Where a site goes by default."""
    return paths.results_folder() / scale / "site"


def build_site(scale: str, out: Path | None = None, results: Path | None = None) -> list[str]:
    """Write the site of a scale, whole or not at all. Executes nothing of the results.

    Args:
        out: default: site_folder().
        results: a folder to take the results from and no other; default: one's own, else those that ship.

    Returns:
        What Sphinx has to say of the pages, a line each; empty if all is well.

    Raises:
        UserError: if there are no results, or one of their files is not as it must be.
    """
    content = read_content(scale, results)
    out = (out or site_folder(scale)).absolute()
    with files.folder_aside(out) as aside:
        source = aside / "source"
        source.mkdir()
        _write_sources(content, source)
        told = _sphinx(source, aside / "html", aside / "doctrees")
        for name in _LEFT_OUT:
            (aside / "html" / name).unlink(missing_ok=True)
        files.put_folder(aside / "html", out)
    return told


def notebook_files(content: Content) -> dict[str, Path]:
    """{name: executed notebook} of those that are there: of the campaign, else as ``bbrlab pages`` wrote it."""
    names = [*content.papers, *OF_MODELS, OVERVIEW]
    places = [content.folder]
    if content.shown.shipped or content.shown.results.absolute() == paths.results_folder().absolute():
        places.append(paths.results_folder() / "pages" / content.shown.scale)
    found = {name: next((p for place in places if (p := place / f"{name}.ipynb").exists()), None) for name in names}
    return {name: path for name, path in found.items() if path is not None}


def missing_notebooks(scale: str) -> list[str]:
    """Notebooks of what is shown of a scale that were not executed."""
    which = shown_on_site(scale)
    papers = dict.fromkeys(f.id.split("/")[0] for f in figures_at(which.scale, []) if (which.results / which.scale / f"{f.id}.parquet").exists())  # fmt: skip
    places = (which.results / which.scale, paths.results_folder() / "pages" / which.scale)
    names = [name for name in (*papers, *OF_MODELS, OVERVIEW) if (paths.ROOT / "notebooks" / f"{name}.ipynb").exists()]
    return [name for name in names if not any((place / f"{name}.ipynb").exists() for place in places)]


def _write_sources(content: Content, source: Path) -> None:
    """Every page's source, and the files that they show."""
    executed = {name: notebooks.read_notebook(path) for name, path in notebook_files(content).items()}
    titles = _titles(content)
    pages = documents.write_documents(source)
    put = source / "notebooks"
    put.mkdir(exist_ok=True)
    (source / "papers").mkdir()
    for name, notebook in executed.items():
        title = f"{titles[name]} (notebook)" if name in titles else ""
        page = notebooks.notebook_page(notebook, put, name, title=title)
        (put / f"{name}.md").write_text(f"---\norphan: true\n---\n\n{page}", encoding="utf-8")
    for paper in content.papers:
        link = f"../notebooks/{paper}" if paper in executed else None
        (source / "papers" / f"{paper}.md").write_text(
            paper_page(content, paper, titles[paper], link), encoding="utf-8"
        )
    of_models = {name: f"notebooks/{name}" for name in OF_MODELS if name in executed}
    trust = documents.named(pages, "trust")
    rest = [p for p in pages if p not in (trust, Path("LIMITATIONS.md"))]
    entries = ["Papers <papers/index>", "Models <models>", "Method <method>", "Runs <runs>"]
    entries += [f"Trust </{trust.with_suffix('')}>"] if trust else []
    entries += ["Limitations </LIMITATIONS>", "Documentation <documentation>"]
    more = [(str(trust.with_suffix("")), "Trust", "What was predicted before anyone here had seen the measurements.")] if trust else []  # fmt: skip
    more += [("LIMITATIONS", "Limitations", "What testbeds have and virtual time has not."),
             ("documentation", "Documentation", "Set it up, write a scenario, add a paper, an algorithm or a claim.")]  # fmt: skip
    links = {documents.title_of(p): p for p in (
        Path("data/README.md"), *filter(None, (documents.named(pages, s) for s in ("bbr", "architecture", "results", "measured"))),
    ) if p in pages}  # fmt: skip
    texts = {
        "index": front.front_page(content, titles, more, "\n".join(entries)),
        "papers/index": front.papers_page(content, titles),
        "models": front.models_page(content, of_models, documents.named(pages, "models")),
        "method": front.method_page(links),
        "runs": front.runs_page(content),
        "documentation": documents.contents_page(rest),
    }
    for name, text in texts.items():
        (source / f"{name}.md").write_text(text, encoding="utf-8")


def _titles(content: Content) -> dict[str, str]:
    """{paper: its title}: of its notebook."""
    found = {}
    for paper in content.papers:
        path = paths.ROOT / "notebooks" / f"{paper}.ipynb"
        found[paper] = notebooks.title_of(notebooks.read_notebook(path), paper) if path.exists() else paper
    return found


def _settings() -> dict[str, Any]:
    """Sphinx's configuration."""
    return {
        "project": "bbrlab",
        "extensions": ["myst_parser"],
        "myst_heading_anchors": 4,
        "myst_enable_extensions": [],
        "suppress_warnings": ["myst.header"],
        "html_theme": "pydata_sphinx_theme",
        "html_title": "bbrlab",
        "html_static_path": [str(STATIC)],
        "html_css_files": ["site.css"],
        "highlight_language": "none",  # of a block that says none
        "html_copy_source": False,
        "html_show_sourcelink": False,
        "html_show_copyright": False,
        "html_show_sphinx": False,
        "html_permalinks_icon": "#",
        "html_sidebars": {
            name: [] for name in ("index", "models", "method", "runs", "LIMITATIONS", "papers/*", "notebooks/*")
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


def _sphinx(source: Path, out: Path, doctrees: Path) -> list[str]:
    """Run Sphinx; returns its warnings."""
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError

    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")  # so that equal sites are equal files
    warnings = io.StringIO()
    try:
        app = Sphinx(str(source), None, str(out), str(doctrees), "html", _settings(), status=None, warning=warnings)
        app.connect("html-page-context", _scripts)
        app.build(force_all=True)
    except SphinxError as error:
        raise UserError(f"the site could not be written: {error}") from None
    told = re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue())
    return [line.replace(f"{source}/", "") for line in told.splitlines() if line.strip()]


def _scripts(app: Any, page: str, template: str, context: Mapping[str, Any], doctree: Any) -> None:
    """What a page loads besides the theme's."""
    body = str(context.get("body", ""))
    if _CHART in body:
        app.add_js_file("plotly-basic.min.js", loading_method="defer")
    if "bb-" in body:
        app.add_js_file("site.js", loading_method="defer")
