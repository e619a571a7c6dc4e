"""The format of RUBRIC.yaml: an assignment and its points (courses/README.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from bbrlab.base.errors import UserError
from bbrlab.base.strict import NonNegative, Positive, Strict
from bbrlab.results.verdicts import FINAL

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Arithmetic = int | Number | Annotated[str, Field(min_length=1, max_length=500)]
Scalar = int | Number | str
Points = NonNegative
SHIPPED_SALT = "change this text before the course begins"
VALUES_MAX = 1_000_000  # that a parameter may be drawn from
DIGITS = 9  # after the point, that values of a range are rounded to
ROUNDED = 10.0**-DIGITS


class Values(Strict):
    """Allowed values: from ``low`` to ``high`` (in steps), or ``one_of`` some."""

    low: int | Number | None = Field(None, description="smallest")
    high: int | Number | None = Field(None, description="largest")
    step: Annotated[int, Field(gt=0)] | Positive | None = Field(
        None, description="between neighbours, counted from low: no other values; a parameter that is drawn needs it"
    )
    one_of: Annotated[list[Scalar], Field(min_length=1, max_length=1000)] | None = Field(
        None, description="these only, in place of low and high"
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Values:
        if self.one_of is not None:
            if (self.low, self.high, self.step) != (None, None, None):
                raise ValueError("give one_of, or low and high, not both")
        elif self.low is None or self.high is None:
            raise ValueError("give low and high, or one_of")
        elif self.low > self.high:
            raise ValueError(f"low {self.low:g} must not be above high {self.high:g}")
        elif self.step is not None and (self.high - self.low) / self.step >= VALUES_MAX:
            raise ValueError(f"low to high in such steps makes more than {VALUES_MAX} values")
        elif not self.allow(self.high):
            raise ValueError(
                f"high {self.high:g} is none of the values: from low {self.low:g} in steps of {self.step:g} the last is {self.all()[-1]:g}"
            )
        return self

    def all(self) -> list[Scalar]:
        """Every value: of a range ascending, without ``step`` its ends; of ``one_of`` in its order."""
        if self.one_of is not None:
            return list(self.one_of)
        assert self.low is not None and self.high is not None
        if self.step is None:
            return [self.low, self.high]
        count = int((self.high - self.low) / self.step + 1e-9) + 1
        values = [self.low + i * self.step for i in range(count)]
        return [v if isinstance(v, int) else round(v, DIGITS) for v in values]

    def allow(self, value: Any) -> bool:
        """Whether a value is one of them."""
        if self.one_of is not None:
            return value in self.one_of
        assert self.low is not None and self.high is not None
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        if self.step is None:
            return True
        nearest = self.low + round((value - self.low) / self.step) * self.step
        return math.isclose(value, nearest, rel_tol=0, abs_tol=ROUNDED)

    def __str__(self) -> str:
        if self.one_of is not None:
            return "one of " + ", ".join(map(str, self.one_of))
        return f"{self.low} to {self.high}{f' in steps of {self.step}' if self.step is not None else ''}"


class CheckPoints(Strict):
    """Points of the checks that every assignment has."""

    complete: Points = Field(0.0, description="every part is there and can be read")
    scenario: Points = Field(0.0, description="`scenario.yaml` is the one that was asked for")
    runs: Points = Field(
        0.0, description="every asked run is there, whole and unedited; in proportion to how many of them"
    )
    rerun: Points = Field(
        0.0,
        description="the sample that is run again is the same, byte for byte; in proportion to what was drawn, also where it is missing",
    )


class Limits(Strict):
    """What a submission may cost. What is beyond is not read or not run, and told."""

    submission_mb: Positive = Field(200.0, description="all of a submission, unpacked")
    files: Annotated[int, Field(ge=1, le=100_000)] = Field(2000, description="files and folders of a submission")
    runs: Annotated[int, Field(ge=1, le=1000)] = Field(100, description="result folders that are looked at")
    examine_s: Positive = Field(300.0, description="time to look at a submission, in s of a processor")
    run_s: Positive = Field(60.0, description="estimated time of one run, in s")
    rerun_s: Positive = Field(300.0, description="estimated time of all runs of the sample, in s")
    end_s: Positive = Field(900.0, description="a run of the sample is ended after so many real seconds")
    memory_mb: Positive = Field(2000.0, description="memory of a guest, and of the process that looks at a submission")
    disk_mb: Positive = Field(500.0, description="what a run may write")


class JudgedClaim(Strict):
    """A claim on the student's own runs, judged by the package's judge (docs/explanation/verdicts.md)."""

    id: Name = Field(description="questions name a claim by it")
    says: Annotated[str, Field(min_length=10)] = Field(description="what the runs must show, for people")
    at: dict[str, Any] = Field(
        {}, description="`where`, `along`, `group`, as in claims.yaml, without `figure`; or several with names"
    )
    metric: str | None = Field(
        None, description="arithmetic on columns, as in claims.yaml; `ware`, `fluid` and `burst` are the models' shares"
    )
    expect: dict[str, Any] = Field(description="as in claims.yaml")
    because: Annotated[str, Field(min_length=5)] = Field(description="the reason for the tolerance")
    verdict: Literal["reproduced", "not reproduced", "inconclusive"] = Field(
        "reproduced", description="the verdict that gives the points"
    )
    points: Points = Field(0.0, description="0: the claim is there for questions only")  # fmt: skip


class Hint(Strict):
    """What a student reads whose answer is a usual mistake; without a condition, whose answer is wrong otherwise."""

    says: Annotated[str, Field(min_length=5, max_length=500)] = Field(
        description="what the student reads: where the mistake is, not the right answer"
    )
    times: Arithmetic | None = Field(
        None, description="for an answer that is so many times the right one: 8, bits for bytes"
    )
    value: Arithmetic | None = Field(None, description="for this answer; arithmetic on `{parameter}` as in a question")
    choice: str | None = Field(None, description="for this choice")
    within_percent: Positive | None = Field(None, description="for an answer that is so near the right one")
    part: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="of the question's points that such an answer gets"
    )

    @model_validator(mode="after")
    def _one_condition(self) -> Hint:
        given = self._conditions()
        if len(given) > 1:
            raise ValueError(f"a hint has one condition at most (found: {', '.join(given)})")
        if self.part and not given:
            raise ValueError("part: only an answer that a condition describes gets a part of the points")
        return self

    @property
    def condition(self) -> tuple[str, Any] | None:
        """Its name and value; None: for every other wrong answer."""
        return next(iter(self._conditions().items()), None)

    def _conditions(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in ("times", "value", "choice", "within_percent")}
        return {name: value for name, value in given.items() if value is not None}


class Question(Strict):
    """A question. Its right answer is exactly one of ``value``, ``choice``, ``number_of``, ``verdict_of``, ``person``."""

    id: Name = Field(description="its key in `answers.yaml`")
    asks: Annotated[str, Field(min_length=10)] = Field(description="the question")
    points: Points = Field(description="for the right answer")
    value: Arithmetic | None = Field(None, description="a number, or arithmetic on `{parameter}`")
    choice: str | None = Field(None, description="one of `choices`")
    choices: Annotated[list[str], Field(min_length=2)] | None = Field(None, description="of a question with `choice`")
    number_of: Name | None = Field(None, description="a claim: the number that the student's own runs give")
    verdict_of: Name | None = Field(None, description="a claim: the judge's verdict on the student's own runs")
    person: Annotated[str, Field(min_length=5)] | None = Field(
        None,
        description="for a text that a person grades: what is looked for; the points come with `bbrlab grade --marks`",
    )
    within: Arithmetic | None = Field(None, description="absolute tolerance of a number")
    within_percent: Positive | None = Field(None, description="the same, relative")
    hints: Annotated[list[Hint], Field(max_length=20)] = Field(
        [], description="usual mistakes: the first that fits is what the student reads"
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Question:
        kinds = ("value", "choice", "number_of", "verdict_of", "person")
        given = [k for k in kinds if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(kinds)} is needed (found: {', '.join(given) or 'none'})")
        tolerances = [k for k in ("within", "within_percent") if getattr(self, k) is not None]
        if len(tolerances) != (1 if given[0] in ("value", "number_of") else 0):
            raise ValueError("a number needs one of within, within_percent, and nothing else does")
        if (self.choices is not None) != (self.choice is not None):
            raise ValueError("choice and choices go together")
        if self.choice is not None and self.choice not in (self.choices or []):
            raise ValueError(f"choice '{self.choice}' is not one of choices")
        is_number = given[0] in ("value", "number_of")
        for hint in self.hints:
            if self.person is not None:
                raise ValueError("hints: a person who grades writes them; leave them out")
            if hint.choice is not None and (hint.choice not in self.options or hint.choice == self.choice):
                raise ValueError(f"hints: '{hint.choice}' is no wrong choice of this question")
            if not is_number and (hint.times, hint.value, hint.within_percent) != (None, None, None):
                raise ValueError("hints: times, value and within_percent are of numbers")
        return self

    @property
    def options(self) -> list[str]:
        """The choices; empty if the answer is a number or a text."""
        return list(FINAL) if self.verdict_of is not None else list(self.choices or [])


class Late(Strict):
    """What late work costs, by days that have begun after the deadline."""

    deadline: Annotated[str, Field(max_length=40)] | None = Field(
        None,
        description="ISO 8601 with the zone, as 2026-12-01T23:59:00+01:00; without it: Gradescope's own, with a student's extension",
    )
    free_days: Annotated[int, Field(ge=0, le=365)] = Field(0, description="late days that cost nothing")
    percent_per_day: Annotated[float, Field(ge=0, le=100)] = Field(
        10.0, description="of the points that were reached, for each further day"
    )
    last_day: Annotated[int, Field(ge=0, le=365)] | None = Field(
        None, description="after so many late days there are no points; default: no end"
    )

    @field_validator("deadline")
    @classmethod
    def _is_an_instant(cls, text: str | None) -> str | None:
        if text is not None:
            instant_of(text)
        return text


def instant_of(text: str) -> datetime:
    """An instant of ISO 8601. ValueError for another text, or one without a zone."""
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"'{text[:40]}' is no time; write it as 2026-12-01T23:59:00+01:00") from None
    if instant.tzinfo is None:
        raise ValueError(f"'{text[:40]}' has no zone; write it as 2026-12-01T23:59:00+01:00")
    return instant


class Rubric(Strict):
    """One assignment."""

    name: Name = Field(description="of the assignment: small letters, digits, - and _; part of what is drawn")
    title: Annotated[str, Field(min_length=3, max_length=120)] = Field(description="for people")
    salt: Annotated[str, Field(min_length=12)] = Field(
        description="a secret of the teacher's: decides what each student draws, and which runs are made again"
    )
    parameters: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")], Values] = Field(
        {},
        description="what is drawn for each student, by name; `{name}` stands for it in `scenario`, `claims` and `questions`",
    )
    seeds: Annotated[int, Field(ge=1, le=20)] = Field(
        description="how many seeds are drawn for each student; every point is run with each"
    )
    scenario: dict[str, Any] = Field(description="the scenario that is asked for (docs/reference/scenario.md)")
    free: dict[str, Values] = Field(
        {}, description="{dotted path of the scenario: what the student may choose in place of the asked value}"
    )
    kernel: str | None = Field(None, description="entry of config/kernels.yaml; default: its default")
    points: CheckPoints = Field(description="of the checks")
    rerun: Annotated[int, Field(ge=0, le=100)] = Field(2, description="how many runs are made again")
    claims: list[JudgedClaim] = Field([], description="what the student's own runs are judged by")
    questions: list[Question] = Field([], description="what is asked besides")
    late: Late = Field(Late(percent_per_day=0), description="what late work costs; default: nothing")
    limits: Limits = Field(Limits(), description="what a submission may cost")  # fmt: skip
    _folder: Path | None = PrivateAttr(None)

    @property
    def folder(self) -> Path | None:
        """The folder of its file, which files of its scenario are relative to; None: it names none."""
        return self._folder

    def keep_place(self, folder: Path) -> None:
        """Remember the folder of its file."""
        self._folder = folder

    @model_validator(mode="after")
    def _consistent(self) -> Rubric:
        for name, values in self.parameters.items():
            if values.one_of is None and values.step is None:
                raise ValueError(f"parameters.{name}: a range that is drawn from needs a step")
        ids = [c.id for c in self.claims]
        for kind, all_ids in (("claims", ids), ("questions", [q.id for q in self.questions])):
            for id in all_ids:
                if all_ids.count(id) > 1:
                    raise ValueError(f"{kind}: '{id}' stands twice")
        for question in self.questions:
            claim = question.number_of or question.verdict_of
            if claim is not None and claim not in ids:
                raise ValueError(
                    f"questions: {question.id}: there is no claim '{claim}' (there are {', '.join(ids) or 'none'})"
                )
        if (self.points.rerun > 0) != (self.rerun > 0):
            raise ValueError("points.rerun and rerun go together: give both, or 0 for both")
        if self.total <= 0:
            raise ValueError("points: an assignment gives at least some points")
        return self

    @property
    def total(self) -> float:
        """The sum of all points."""
        checks = sum(getattr(self.points, name) for name in CheckPoints.model_fields)
        return float(checks + sum(c.points for c in self.claims) + sum(q.points for q in self.questions))


def in_words(parameters: Mapping[str, Scalar]) -> str:
    """Parameters for the end of a message; empty without any."""
    return f" (with {', '.join(f'{name} {value}' for name, value in parameters.items())})" if parameters else ""


class Misplaced(UserError):
    """An error in a rubric with its parameters filled in; ``place``: its keys from the outermost."""

    def __init__(self, place: tuple[Any, ...], problem: str):
        super().__init__(problem)
        self.place = place
