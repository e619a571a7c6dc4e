"""The pages that are of no single paper: the front page, the list of papers, models, method, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from bbrlab.claims.judge import OWN, SECOND_HAND
from bbrlab.claims.load import claims_of
from bbrlab.claims.schema import Statement
from bbrlab.claims.statements import counted_apart
from bbrlab.results.figures import has_panel
from bbrlab.results.replacement import replacement
from bbrlab.results.verdicts import STATEMENT_VERDICTS
from bbrlab.show.charts import chart_of
from bbrlab.show.content import Content
from bbrlab.show.distances import told
from bbrlab.show.html import badge, block, heading, slug
from bbrlab.show.model_accuracy import met_table
from bbrlab.show.outcomes import CAUSES, MISSED, RESTING_ON
from bbrlab.show.paper_page import bar, figure_html, in_order, legend, scales_in_words, whose_html

SAYS = (
    "Published BBR experiments, repeated on a real Linux kernel in virtual time, the same bytes every time. Every statement of the papers "
    "stands beside what was measured and what the models say. BBRv1, CUBIC and Reno are Linux's own; BBRv2 and BBRv3 are ours, written from "
    "the Internet-Drafts."
)
VERDICTS = {
    "reproduced": "Every claim that tests the statement came out as the paper says, each with its tolerance and at most 5 % error.",
    "reproduced as read": "All of it did in one reading of what the paper leaves open, and not in another.",
    "partly reproduced": "Some of its claims did, others did not: k of n, in every reading.",
    "not reproduced": "None of its claims did, and in every reading at least one is surely outside of what is expected.",
    "inconclusive": "The seeds do not tell: the intervals straddle what is expected.",
    "partly run": "Some of its points, or runs of the paper's length, are still to be run at this scale. No verdict is given before that.",
    "not run": "None of its points belongs to what was run.",
}  # fmt: skip
_CARDS = (
    ("papers/index", "Papers", "Every statement, one by one: what the paper says, what was measured, what the models say, the verdict."),
    ("models", "Models", "Ware's steady state, the fluid model and the burst model, beside the measurements."),
    ("method", "Method", "From a sentence in a paper to a verdict with an error rate."),
    ("runs", "Runs", "Every run, and how to look into one: goodput, window, RTT, queue and BBR's states over time."),
)  # fmt: skip


def front_page(content: Content, titles: Mapping[str, str], more: Sequence[tuple[str, str, str]], entries: str) -> str:
    """The source of the first page.

    Args:
        titles: {paper: its title}.
        more: further cards: page, title, words.
        entries: of the site's table of contents.
    """
    of_papers = [s for s in content.statements if not counted_apart(s)]
    counts = content.counts(of_papers)
    runs = [t.drop_duplicates(["point", "seed"]) for t in content.tables.values()]
    number = sum(len(r) for r in runs)
    hours = sum(float(r["virtual_s"].sum()) for r in runs) / 3600
    core_hours = sum(float(r["wall_s"].sum()) for r in runs) / 3600
    failed = sum(int((~r["ok"].astype(bool)).sum()) for r in runs)
    kernels = ", ".join(dict.fromkeys(k for t in content.tables.values() for k in t["kernel"].unique()))
    tiles = (
        (str(sum(counts.values())), "statements of papers"),
        (f"{number:,}", "runs shown here"),
        (f"{hours:,.0f} h", "of testbed time" + ("" if content.shown.shipped else f" in {core_hours:.1f} core hours")),
    )
    shown = "".join(f"<li><b>{escape(big)}</b><span>{escape(small)}</span></li>" for big, small in tiles)
    cards = "".join(
        f'<li><a href="{page}.html"><b>{escape(title)}</b><span>{escape(words)}</span></a></li>'
        for page, title, words in (*_CARDS, *more)
    )
    parts = [
        heading("bbrlab", 1),
        block(f'<p class="bb-hero">{escape(SAYS)}</p>'),
        heading("What reproduces, and how closely", 2),
        block(f'<div class="bb-lead">{told(content, of_papers)}</div>{bar(counts)}{legend(counts)}'),
        heading("Paper by paper", 2),
        block(_scores(content, titles)),
    ]
    if swap := replacement():
        parts.insert(
            1,
            block(
                f'<p class="bb-note"><strong>{escape(swap.words)}</strong> in every run of this site; statements are of {escape(swap.old)}.</p>'
            ),
        )
    if panels := [f for f in content.figures.values() if has_panel(f)]:
        chart = chart_of(panels[0], content.tables[panels[0].id], claims_of(content.statements), content.shown.results)
        paper = panels[0].id.split("/")[0]
        parts += [
            heading("One figure of many", 2),
            block(
                f"<p>{escape(titles[paper])}, {escape(panels[0].scenario.figure)}: hollow marks are the paper's values, filled ones were measured "
                f'here, dashed lines are models. All of its figures: <a href="papers/{paper}.html">its page</a>.</p>{figure_html(chart)}'
            ),
        ]
    parts += [
        heading("Where these numbers come from", 2),
        block(
            f'<ul class="bb-tiles">{shown}</ul><p>Scale {scales_in_words(content, content.figures.values())}, kernel {escape(kernels)}; '
            f"{failed or 'none'} of the runs failed its self-checks. {whose_html(content)}</p>"
        ),
        heading("Where to go", 2),
        block(f'<ul class="bb-cards">{cards}</ul>'),
        heading("Two commands", 2),
        "```text\nmake all     # set up, run the campaign at scale quick, write this site\nmake test    # set up, then run the tests\n```\n\n",
        "A single experiment: `bbrlab run scenarios/PAPER/FIGURE.yaml --out /tmp/run`, then `bbrlab show /tmp/run`.\n\n",
        f"```{{toctree}}\n:hidden:\n\n{entries}\n```\n",
    ]
    return "".join(parts)


def _scores(content: Content, titles: Mapping[str, str], base: str = "papers/") -> str:
    """A line for each paper, for whose code the statements rest on, and for what is counted apart: with the papers' it would count as theirs."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in ("", "statements", "verdicts of the statements"))
    papers = {paper: [s for s in mine if not counted_apart(s)] for paper, mine in content.papers.items()}
    lines = [(f'<a href="{base}{paper}.html">{escape(titles[paper])}</a>', mine) for paper, mine in papers.items()]
    every = [s for mine in papers.values() for s in mine]
    lines += [(escape(words), [s for s in every if content.code(s.id) == code]) for code, words in RESTING_ON.items()]
    for name in (SECOND_HAND, OWN):
        lines.append((f"{escape(name)}, counted apart", [s for s in content.statements if counted_apart(s) == name]))
    rows = "".join(
        f'<tr><td>{name}</td><td data-label="statements">{len(mine)}</td><td>{bar(content.counts(mine))}</td></tr>'
        for name, mine in lines
        if mine
    )
    return (
        f'<div class="bb-scroll" tabindex="0" role="region" aria-label="Verdicts by paper"><table class="bb-scores"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        + _causes(content, every)
    )


def _causes(content: Content, statements: Sequence[Statement]) -> str:
    """Where the cause lies of what is partly or not reproduced, by whose code it rests on."""
    missed = [s for s in statements if content.verdict(s.id) in MISSED]
    if not missed:
        return ""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in ("", *CAUSES.values()))
    rows = ""
    for code, words in RESTING_ON.items():
        mine = [content.cause(s.id) for s in missed if content.code(s.id) == code]
        cells = "".join(f'<td data-label="{escape(name)}">{mine.count(kind)}</td>' for kind, name in CAUSES.items())
        rows += f"<tr><td>{escape(words)}</td>{cells}</tr>" if mine else ""
    return (
        "<p>Where the cause lies of those that are partly or not reproduced; each has its evidence on its paper's page:</p>"
        f'<div class="bb-scroll" tabindex="0" role="region" aria-label="Causes"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def papers_page(content: Content, titles: Mapping[str, str]) -> str:
    """The source of the list of papers."""
    entries = "\n".join(content.papers)
    return (
        heading("Papers", 1)
        + "Each paper's statements are in our words; each is tested by one or more claims, a number with a tolerance, an order, a bound or a trend.\n\n"
        + block(
            legend(content.counts([s for s in content.statements if not counted_apart(s)]))
            + _scores(content, titles, "")
        )
        + f"```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    )


def models_page(content: Content, notebooks: Mapping[str, str], document: Path | None) -> str:
    """The source of the page of models.

    Args:
        notebooks: {name: page} of their notebooks that are there.
        document: docs' page of the models.
    """
    parts = [
        heading("Models", 1),
        "Three models give the share of BBR flows that compete with loss-based ones. They stand in the charts and tables of every figure whose "
        "scenario they describe.\n\n"
        "- **Ware et al. (IMC 2019)**: the steady state of flows that are never kept from sending, in a closed form.\n"
        "- **Scherrer et al. (IMC 2022)**: differential equations of all flows and the queue, here as long as the runs.\n"
        "- **The burst model** of this package: every flow runs its algorithm once per ACK; bursts of packets are the only events. No constant is fitted; which facts of Linux are in it was partly decided after comparisons.\n\n",
        *([block(table)] if (table := met_table(content)) else []),
        "How they are defined, and where they fail: "
        + (f"[their page](/{document}).\n\n" if document else "docs.\n\n"),
        "By hand: `bbrlab model --help`.\n\n",
    ]
    if notebooks:
        entries = "\n".join(f"/{page}" for page in notebooks.values())
        parts.append(f"```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n")
    return "".join(parts)


def method_page(links: Mapping[str, Path]) -> str:
    """The source of the page on the method.

    Args:
        links: {words: page of the documentation}.
    """
    meanings = "".join(f"<tr><td>{badge(v)}</td><td>{escape(VERDICTS[v])}</td></tr>" for v in STATEMENT_VERDICTS)
    more = "".join(f"- [{words}](/{page})\n" for words, page in links.items())
    return (
        heading("Method", 1)
        + heading("From a sentence to a verdict", 2)
        + "1. **Scenario.** A file says what the paper did: rate, RTT, buffer, queue, flows, times. What a paper leaves open is a case of its own.\n"
        "2. **Run.** A Linux kernel boots as an ordinary program, builds the dumbbell with Mininet and sends with iperf3. Its clock moves only when "
        "everything in it sleeps, so that the host's speed changes nothing. The same seed gives the same bytes.\n"
        "3. **Self-checks.** Rate, delay, buffer and more are measured before and during each run and compared with what was asked. A run that fails is "
        "left out of every mean, and counted.\n"
        "4. **Claims.** Each statement is tested by one or more claims: a number with a tolerance that has a reason, or an order, a bound or a trend.\n"
        "5. **Judging.** The seeds' interval is compared with what is expected. Claims that need more seeds get them by a rule that does not look at the mean.\n"
        "6. **Statements.** All claims of a statement count, reading by reading of what the paper leaves open; controls and the cells of a panel stand beside.\n\n"
        + heading("The verdicts", 2)
        + block(f'<div class="bb-scroll"><table class="bb-verdicts"><tbody>{meanings}</tbody></table></div>')
        + "A verdict **stands** if it does so among all claims that were judged together (the share of false ones is bounded).\n\n"
        + (heading("More", 2) + more if more else "")
    )


def runs_page(content: Content) -> str:
    """The source of the list of runs."""
    parts = [
        heading("Runs", 1),
        "One run over time, with its goodput, congestion window, RTT, queue, BBR's states, self-checks and the command that repeats it:\n\n"
        "```text\nbbrlab show FOLDER_OF_A_RUN     # such as one of those below, or what bbrlab run wrote\n```\n\n",
    ]
    if content.shown.shipped:
        parts.append(
            "These are results that ship, without the runs' samples; the command at a figure makes its runs.\n\n"
        )
    for figure in sorted(content.figures.values(), key=in_order):
        id, table = figure.id, content.tables[figure.id]
        runs = table.drop_duplicates(["point", "seed"])
        grouped = runs.groupby("point", sort=False)
        rows = "".join(
            f"<tr><td><code>runs/{escape(id)}/{escape(str(point))}/seed-1</code></td><td>{len(mine)}</td><td>{int((~mine['ok'].astype(bool)).sum())}</td></tr>"
            for point, mine in grouped
        )
        failed = int((~runs["ok"].astype(bool)).sum())
        parts.append(block(
            f'<details class="bb-runs" id="{slug(f"runs-{id}")}"><summary><b>{escape(id)}</b>: {len(runs)} runs of {grouped.ngroups} points at scale {escape(content.scales[id])}, {failed or "none"} failed</summary>'
            f'<p class="bb-command"><code>{escape(content.command(id))}</code></p>'
            f'<div class="bb-scroll" tabindex="0" role="region" aria-label="Runs of {escape(id)}"><table><thead><tr><th scope="col">first run, below the results folder</th>'
            f'<th scope="col">seeds</th><th scope="col">failed</th></tr></thead><tbody>{rows}</tbody></table></div></details>'
        ))  # fmt: skip
    return "".join(parts)
