"""Version 1 of the query language, as the JSON on the wire reads it.

The language is closed: anything not declared here is refused, so that a query can only be a linear query of declared
columns. These models know no schema. `service.query.plan` checks a query against one.
"""

from typing import Annotated, Literal

from pydantic import Field, Strict

from service.query.expressions_ast import Condition, GroupKey
from service.query.items import AnyItem
from service.query.literals_ast import NOT_EMPTY, SOME, Closed, Name, not_longer
from service.query.noise_ast import SELECT_MAX, HalfWidth, MechanismWord, Noise, PerIndividual, Rho, Share, Sigma
from service.query.parameters_ast import MIXED_MAX, HashedParameters
from service.query.reduction import Reduce
from service.query.schema import doc, optional

GROUP_BY_MAX = 32


class Query(Closed):
    """One query of version 1. `null` stands for an absent `from`, `where`, `per_individual` or `l2_clip`."""

    version: Annotated[int, Field(ge=1, le=1, json_schema_extra={"const": 1}), doc("The version of the language: 1.")]
    from_: Name | None = Field(
        default=None, alias="from", description="The table that the rows are of; left out, the table of individuals."
    )
    select: Annotated[
        tuple[AnyItem, ...],
        Strict(strict=False),
        Field(max_length=SELECT_MAX, json_schema_extra=SOME),
        not_longer(SELECT_MAX),
        NOT_EMPTY,
        doc("The numbers to compute, in the order of the answer; no item twice."),
    ]
    where: Annotated[Condition | None, doc("The condition that rows must meet; left out, every row is selected.")] = (
        None
    )
    group_by: Annotated[
        tuple[GroupKey, ...],
        Strict(strict=False),
        Field(max_length=GROUP_BY_MAX),
        not_longer(GROUP_BY_MAX),
        doc("The groups, the first one outermost; they range over the declared domains, empty groups included."),
    ] = ()
    per_individual: Annotated[
        PerIndividual | None,
        doc("The bound on the vector of one individual; left out, the natural bound of the query."),
    ] = None
    noise: Annotated[
        Noise, doc("The precision, in one of five ways; `prepaid`, or left out, of a query for `exhausted` alone.")
    ]
    mechanism: Annotated[
        MechanismWord,
        doc(
            "The law of the noise: `gaussian`, the default; or `laplace`, for queries in which an individual has one"
            " number."
        ),
    ] = "gaussian"
    reduce: Reduce | None = optional(
        "One number of the exact sum, with one noise: its largest coordinate, or its L2 norm; left out, the sum."
    )
    rule: Annotated[
        Literal["skip", "clip"],
        doc(
            "The rule for an individual whose limit cannot pay for its vector: `clip` shortens the vector to what is"
            " left; `skip`, the default, leaves it out, by the rule of the dataset."
        ),
    ] = "skip"
    reuse: Annotated[
        bool,
        doc(
            "Whether a released answer to the same query may be returned, at no charge. Left out, it may, unless"
            " `active` or `exhausted` is selected, whose number changes with every charge."
        ),
    ] = True

    @property
    def may_reuse(self) -> bool:
        """Tell whether a released answer will do. It will not where budgets change the answer, as for `active`."""
        return self.reuse and self.select[0].may_reuse

    @property
    def hashed(self) -> list[HashedParameters]:
        """The parameters of models that the query states by their hash, in its order.

        Every query is searched, although most have none. So this is one loop that skips lists of literals.
        """
        found: list[HashedParameters] = []
        waiting: list[object] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, HashedParameters):
                found.append(part)
            elif isinstance(part, Closed):
                waiting.extend(reversed(part.__dict__.values()))
            elif isinstance(part, tuple) and (len(part) <= MIXED_MAX or isinstance(part[0], Closed)):
                waiting.extend(reversed(part))
        return found

    @property
    def is_by_item(self) -> bool:
        """Tell whether each select item is to have its own precision."""
        match self.noise:
            case Sigma(sigma=numbers) | HalfWidth(half_width=numbers) | Rho(weights=numbers) | Share(weights=numbers):
                has_several = isinstance(numbers, tuple)
            case _:
                has_several = False
        return has_several or (self.per_individual is not None and isinstance(self.per_individual.l2_clip, tuple))
