"""Whose code a statement rests on: Linux's own, this lab's BBRv2 and BBRv3, or no run at all."""

from __future__ import annotations

from bbrlab.claims.resolution import WITHOUT_CHANCE
from bbrlab.claims.schema import Claim, Statement
from bbrlab.claims.select import full_figures, select
from bbrlab.scenario.schema import PARAMETER_SETS

LINUX, LAB, MODEL = "Linux's own", "the lab's BBRv2 and BBRv3", "a model"
CODES = (LINUX, LAB, MODEL)


def code_of(statement: Statement) -> str:
    """One of CODES, by the flows of the runs that the statement's claims read (those that count)."""
    algorithms = {algorithm for claim in statement.claims if not claim.role for algorithm in algorithms_of(claim)}
    if not algorithms:
        return MODEL
    return LAB if algorithms & set(PARAMETER_SETS) else LINUX


def algorithms_of(claim: Claim) -> set[str]:
    """The algorithms of all flows in the runs that a claim reads."""
    terms = {n.rpartition(".")[0] for n in claim.columns if n.rpartition(".")[2] not in WITHOUT_CHANCE}
    return {
        flow.cca
        for name in terms
        for point in select(claim.at[name], full_figures()[claim.at[name].figure].points)
        for flow in point.scenario.flows
    }
