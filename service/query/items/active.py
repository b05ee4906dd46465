"""Coverage as a query: the number of individuals that have a share of the dataset's budget left.

What an individual has left is a function of its own record and of the answers before. So this is a linear query like
any other, and all who are counted pay for it (theory: releasing coverage privately). The share must be large enough to
pay for it, so that the query's own charge leaves nobody out of the number. All refusals are by public numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from service.query.item import Form, Input, Item, ItemPlace, PlanItem
from service.query.literals_ast import Closed
from service.query.phrases import number_text
from service.query.problems import QueryProblem
from service.query.schema import doc

_DIGITS: Final = 3  # of a share that is suggested


@dataclass(frozen=True, slots=True, kw_only=True)
class Active(PlanItem):
    """1 for each individual that has at least `room_units` left: a share of the dataset's budget, rounded up."""

    has_one_norm: ClassVar = True
    is_unit: ClassVar = True

    def refuse_unpayable(self, worst_case_units: int, budget_units: int) -> None:
        """Raise QueryProblem where the room may not pay for this query. The message gives a share that is enough."""
        if self.room_units is None or self.room_units >= worst_case_units:
            return
        paid = "each counted individual pays for this query"
        if worst_case_units > budget_units:
            problem = f"{paid}, and it costs more than the whole budget: ask with more noise"
        else:
            problem = f"{paid}: at least {_least_share(worst_case_units, budget_units)}"
        raise QueryProblem.of("select[0].active.share", problem)

    def of_all(self) -> "Active":
        """The item that counts 1 for each individual, whatever it has left."""
        return replace(self, room_units=None)


class Left(Closed):
    """A part of the budget that is left."""

    share: Annotated[
        float,
        Field(gt=0, le=1),
        doc(
            "The share of the dataset's budget that an individual has left at least, to be counted. It pays for the"
            " query itself: no smaller than the query's worst case."
        ),
    ]


class ActiveItem(Item):
    """One coordinate: 1 for each selected individual that has at least a share of the dataset's budget left.

    It stands alone in `select`.
    """

    FORM: ClassVar = Form(
        words="people with a share of the budget left",
        inputs={
            "share": Input(
                kind="share",
                label="At least this share",
                hint="of the dataset's budget; it pays for the query too",
                value=0.1,
            )
        },
        table="individuals",
    )
    stands_alone: ClassVar = True
    may_reuse: ClassVar = False
    active: Annotated[Left, doc("How much of the budget is left.")]

    @classmethod
    def sentence(cls, body: Any, table: str) -> str:  # noqa: ANN401 - JSON
        """Words that state the share."""
        return f"count of {table} with at least {number_text(100 * body['share'])} % of the budget left"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """The count. The share is taken in whole units, rounded up."""
        share = self.active.share
        units = _units(Fraction(share), place.terms.budget_units)
        return [Active(room_units=units, title=f"active({share:.12g})")]


def _units(share: Fraction, budget_units: int) -> int:
    return ceil(share * budget_units)


def _least_share(units: int, budget_units: int) -> str:
    """A short decimal share, at most 1: little above the least whose whole units, rounded up, are `units` or more."""
    least, exponent = Fraction(units, budget_units), 0
    while least * 10**exponent < 10 ** (_DIGITS - 1):
        exponent += 1
    digits = floor(least * 10**exponent)
    while _units(Fraction(float(Fraction(digits, 10**exponent))), budget_units) < units:
        digits += 1
    return f"{float(Fraction(digits, 10**exponent)):.12g}"
