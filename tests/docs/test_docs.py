"""The documentation says what is so: links lead somewhere, quoted messages exist, generated pages are up to date, the tutorial runs."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import jsonschema
import pytest
import yaml

from bbrlab.base import paths
from bbrlab.campaign.stages import PACKAGES
from bbrlab.cli import schemas
from bbrlab.scenario.load import load_scenario
from docs._make import reference

ROOT = paths.ROOT
TUTORIAL = ROOT / "docs" / "tutorial" / "first_figure.md"
TROUBLE = ROOT / "docs" / "howto" / "troubleshooting.md"
ANY = "…"  # in a quoted message: what differs each time
# Pages of a checkout that a test makes.
MADE_UP = {("tests/show/test_site.py", f"docs/{page}.md") for page in ("flat", "howto/in")}


@functools.cache
def tracked(pattern: str = "*") -> list[Path]:
    """The files of the checkout that Git knows or would take, of those that match; without Git, those of its folders."""
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", pattern], cwd=ROOT, capture_output=True, text=True
    )
    names = done.stdout.splitlines() or [
        str(p.relative_to(ROOT)) for top in ("docs", "config", "data", "courses", *PACKAGES) for p in (ROOT / top).rglob("*")
        if fnmatch(str(p.relative_to(ROOT)), pattern)
    ]  # fmt: skip
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a link may name behind ``#`` on a page: its headings as GitHub spells them."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} (.*)$", prose(page), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {f"{name}-{n}" if n else name for name, count in found.items() for n in range(count + 1)}


def broken_links(page: Path) -> list[str]:
    """Relative links of a page that lead nowhere."""
    found = []
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and (target.suffix != ".md" or anchor not in anchors(target))):
            found.append(link)
    return found


# Links of a template are the site's, which Sphinx looks at (tests/show/test_site.py).
PAGES = [page for page in tracked("*.md") if page.parent.name != "templates"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


def rows_without_a_table(text: str) -> list[str]:
    """Rows that follow no other row, and are no head: what a blank line cuts off a table stands as running text."""
    lines = ["", *text.split("\n"), ""]
    return [
        line for before, line, after in zip(lines, lines[1:], lines[2:], strict=False)
        if line.startswith("|") and not before.startswith("|") and not re.match(r"\|\s*:?-", after)
    ]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_row_is_in_a_table(page):
    assert rows_without_a_table(prose(page)) == []


def test_a_row_that_a_blank_line_cuts_off_is_found():
    assert rows_without_a_table("| a |\n|---|\n| 1 |\n\n| 2 |\n| 3 |\n") == ["| 2 |"]


def bare_decimals(text: str) -> list[str]:
    """Numbers such as .05 outside of code."""
    return re.findall(r"(?<![\w.`/)\]])\.\d+", re.sub(r"`[^`\n]*`", "", text))


@pytest.mark.parametrize("page", tracked("*.md"), ids=lambda page: str(page.relative_to(ROOT)))
def test_decimals_have_a_leading_zero(page):
    assert bare_decimals(prose(page)) == []


@pytest.mark.parametrize(
    "file",
    [*tracked("data/*/claims.yaml"), *tracked("courses/*/rubric.yaml")],
    ids=lambda file: str(file.relative_to(ROOT)),
)
def test_decimals_of_claims_and_rubrics_have_a_leading_zero(file):
    assert bare_decimals(file.read_text()) == []


def test_a_bare_decimal_is_found():
    assert bare_decimals("of .03 to 0.18 (.5); Linux 6.12, `.005`, [a](b).5, ./x, a.7") == [".03", ".5"]


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b` c\n[1](#a-b-c) [2](#d) [3](no.md) [4](page.md#a-b-c)\n```\n[5](no.md)\n```\n", encoding="utf-8"
    )
    assert broken_links(page) == ["#d", "no.md"]


def test_pages_that_code_and_data_name_are_there():
    lost = []
    for path in tracked():
        name = str(path.relative_to(ROOT))
        if path.suffix in (".png", ".gz", ".parquet"):
            continue
        for page in re.findall(r"docs/[\w/.]*\.(?:md|png)", path.read_text(encoding="utf-8", errors="ignore")):
            if not (ROOT / page).exists() and (name, page) not in MADE_UP:
                lost.append(f"{name}: {page}")
    assert lost == []


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [p.relative_to(ROOT / "docs") for p in tracked("docs/*.md") if len(p.relative_to(ROOT / "docs").parts) > 1]
    assert pages and [str(p) for p in pages if f"({p})" not in index] == []


def test_every_field_has_its_meaning():
    for kind in ("scenario", "config", "kernels", "rubric"):
        schema = schemas.schema_of(kind)
        parts = {**schema.get("$defs", {}), schema["title"]: schema}
        for name, part in parts.items():
            for key, field in part.get("properties", {}).items():
                assert field.get("description"), f"{kind}: {name}.{key}"


class _Editor(yaml.SafeLoader):
    """YAML as editors read it (1.2): on and off are words."""


_Editor.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in found if tag != "tag:yaml.org,2002:bool"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Editor.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|false)$"), list("tf"))


def editors_schemas() -> dict[str, str]:
    """{pattern of files: schema's file} as VS Code is told."""
    settings = json.loads((ROOT / ".vscode" / "settings.json").read_text(encoding="utf-8"))
    return {pattern: name for name, pattern in settings["yaml.schemas"].items()}


def problems(path: Path, pattern: str) -> list[str]:
    schema = json.loads((ROOT / editors_schemas()[pattern]).read_text(encoding="utf-8"))
    content = yaml.load(path.read_text(encoding="utf-8"), _Editor)
    return [f"{list(e.path)}: {e.message}" for e in jsonschema.Draft202012Validator(schema).iter_errors(content)]


@pytest.mark.parametrize("pattern", editors_schemas())
def test_the_files_that_ship_are_right_to_an_editor(pattern):
    found = sorted(ROOT.glob(pattern))
    assert found and [(p.name, problems(p, pattern)) for p in found if problems(p, pattern)] == []


@pytest.mark.parametrize(
    ("pattern", "file", "old", "new"),
    [("scenarios/*/*.yaml", "scenarios/sarpkaya2025/fig2a.yaml", "rate_mbit: 10", "rate_mbits: 10"),
     ("scenarios/*/*.yaml", "scenarios/sarpkaya2025/fig2a.yaml", "rtt_ms: 40", "rtt_ms: -40"),
     ("data/*/claims.yaml", "data/tang/claims.yaml", "exactness: ", "exactness: very "),
     ("courses/*/rubric.yaml", "courses/fairness/rubric.yaml", "\nseeds: ", "\nseeds: about "),
     ("config/kernels.yaml", "config/kernels.yaml", "\ndefault:", "\ndefaults:"),
     ("config/config.yaml", "config/config.yaml", "trials: 2", "trials: 0")],
)  # fmt: skip
def test_an_editor_sees_what_is_wrong(tmp_path, pattern, file, old, new):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert old in text
    bad = tmp_path / "bad.yaml"
    bad.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert problems(bad, pattern)


@functools.cache
def messages() -> str:
    """Every text of the package and its set-up, what is filled in as ANY."""
    found = [(ROOT / "envs" / "setup.sh").read_text(encoding="utf-8")]
    found[0] = re.sub(r"\$\((?:[^()]|\([^()]*\))*\)|\$\w+", ANY, found[0])
    for path in (p for name in PACKAGES for p in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                found.append("".join(p.value if isinstance(p, ast.Constant) else ANY for p in node.values))
    return "\n".join(found)


def quoted() -> list[str]:
    """The messages on the troubleshooting page: what stands as code in the first column of its tables of messages."""
    text, found = TROUBLE.read_text(encoding="utf-8"), []
    for table in re.split(r"^\| message \|.*\n\|---.*\n", text, flags=re.MULTILINE)[1:]:
        for row in table.splitlines():
            if not row.startswith("|"):
                break
            found += re.findall(r"`([^`]+)`", row.split(" | ")[0])
    return found


def is_printed(message: str) -> bool:
    return message.strip(ANY).strip() in messages()


def test_messages_that_are_quoted_are_printed():
    assert len(quoted()) > 8
    assert [m for m in quoted() if not is_printed(m)] == []
    assert not is_printed("the guest went for a walk")


def test_the_checks_that_are_explained_are_made():
    text = TROUBLE.read_text(encoding="utf-8")
    table = text.split("| check |")[1].split("\n\n")[0]
    names = [n for row in table.splitlines()[2:] for n in re.findall(r"`(\w+)`", row.split("|")[1])]
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "bbrlab/measure").rglob("*.py"))
    assert len(names) > 4 and [n for n in names if f'"{n}"' not in code] == []


def commands(page: Path) -> list[str]:
    """The commands of a page's blocks without a language."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [line for language, block in blocks if not language for line in block.splitlines() if line.strip()]


def test_the_tutorial_begins_with_the_set_up():
    assert commands(TUTORIAL)[:2] == ["make setup", "source .venv/bin/activate"]
    assert "setup:" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.guest
@pytest.mark.slow
def test_every_command_of_the_tutorial_runs(tmp_path):
    """As a reader types them, one after the other, but for ``make setup`` and where results go."""
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "BBRLAB_RESULTS": str(tmp_path / "results"),
    }  # fmt: skip
    said = {}
    for command in commands(TUTORIAL)[2:]:
        here = command.replace("/tmp/", f"{tmp_path}/")
        done = subprocess.run(["bash", "-c", here], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
        said[command] = done.stdout + done.stderr
    shallow, deep = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("shallow", "deep"))
    share = [s["groups"][0]["share_of_capacity"] for s in (shallow, deep)]
    assert share[0] > 0.5 > share[1], "what the page says of BBRv1's share"
    assert shallow["ok"] and deep["ok"]
    (ran,) = (text for command, text in said.items() if command.endswith("scale=smoke -- fig2a"))
    assert "partly run" in ran
    for result in re.findall(r"`(results/smoke/[\w/.-]+)`", TUTORIAL.read_text(encoding="utf-8")):
        assert (tmp_path / result).is_file(), result


@pytest.mark.parametrize(
    "page", [TUTORIAL, ROOT / "README.md", *sorted((ROOT / "docs/howto").glob("*.md"))], ids=lambda p: p.name
)
def test_commands_of_the_pages_have_the_options_that_there_are(page):
    """Every ``bbrlab COMMAND --option`` on a page is one that the command line has."""
    known = reference.command_line()
    sections = {s.splitlines()[0]: s for s in known.split("\n## ")[1:]}
    wrong = []
    for words in re.findall(
        r"bbrlab ((?:(?:cache|kernel|model) )?[a-z0-9]+)((?: [^\n`|]*)?)", page.read_text(encoding="utf-8")
    ):
        name = f"bbrlab {words[0]}"
        if name not in sections:
            continue
        for option in re.findall(r"(?<=\s)--[a-z][\w-]*", words[1].split("snakemake")[0]):
            if option not in sections[name] and option != "--help":
                wrong.append(f"{name} {option}")
    assert wrong == []


def test_the_version_is_semantic_and_in_the_changelog():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_workflow_is_where_the_catalog_looks():
    """The Snakemake workflow catalog's standard: workflow/Snakefile, config/README.md, .snakemake-workflow-catalog.yml."""
    told = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))["usage"]
    assert set(told) <= {"mandatory-flags", "software-stack-deployment", "report"}
    assert told["software-stack-deployment"] and (ROOT / "config" / "README.md").exists()
    dry = [sys.executable, "-m", "snakemake", "-n", "--quiet", "--cores", "1", "--config", "scale=smoke", "figures=[sarpkaya2025/fig2a]", "-s", "workflow/Snakefile", "--", "sarpkaya2025/fig2a"]  # fmt: skip
    done = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "sarpkaya2025/fig2a" in done.stdout + done.stderr, done.stderr[-2000:]


@pytest.mark.parametrize("form", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda p: p.stem)
def test_issue_forms_are_whole(form):
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(content)
    ids = [part["id"] for part in content["body"]]
    assert len(ids) == len(set(ids)) and all(part["attributes"]["label"] for part in content["body"])


def scenarios_of(page: Path) -> list[str]:
    """The whole scenarios that a page shows."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if block.startswith("name:")]


def test_scenarios_that_pages_show_are_right(tmp_path):
    shown = [text for page in sorted((ROOT / "docs").rglob("*.md")) for text in scenarios_of(page)]
    assert len(shown) > 1
    for number, text in enumerate(shown):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text, encoding="utf-8")
        assert load_scenario(path).flows


def test_the_second_kernel_of_change_bbr_is_the_labs_with_another_folder():
    page = (ROOT / "docs/howto/change_bbr.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^```yaml\n(  mine-6\.12:.*?)^```", page, re.DOTALL | re.MULTILINE)
    mine = yaml.safe_load(shown)["mine-6.12"]
    lab = yaml.safe_load((ROOT / "config/kernels.yaml").read_text(encoding="utf-8"))["kernels"]["lab-6.12"]
    assert mine["add"].pop("net/ipv4") == "bbr-mine" and lab["add"].pop("net/ipv4") == "bbr"
    of_the_entry_alone = ("description", "same_results")
    assert {k: v for k, v in mine.items() if k not in of_the_entry_alone} == {
        k: v for k, v in lab.items() if k not in of_the_entry_alone
    }
