"""The replies for which a workflow's view is not sent as it is: a reader gets the part that is that reader's to see.

And the parts of replies that are stored bytes and are never built from a model: those models describe alone.
"""

from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema

from service.core.units import rho_of_units
from service.workflows.model.ledger_entry import Kind
from service.workflows.model.views import DatasetView, LedgerRow, Principal, PublicDataset, Role

KEY_PATTERN = "^[ -~]*[!-~][ -~]*$"
"""Of an idempotency key: printable ASCII characters, and not spaces alone."""
Rho = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False, max_digits=60)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorDataset(PublicDataset):
    """A dataset as its curators see it: the public part, the ledger's sequence and the counts."""

    sequence: int
    individuals: int
    rows: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRow:
    """One entry of the ledger without the number of people it charged and left out.

    `is_checkable` says whether `hash` is shown with all that gives it (docs/operations.md, "Auditing the ledger"). A
    hash of format 1 commits to numbers of people, so that neither it nor what follows from it alone is shown.
    """

    sequence: int
    query_id: UUID
    analyst: str
    query: dict[str, object]
    words: str
    sigma: float
    grid: float
    dimension: int
    worst_case_rho: str
    asked_at: datetime
    epoch: int
    kind: Kind
    format: int
    mechanism: str
    analyst_id: UUID
    query_sha256: str
    query_hash: str
    grid_log2: int
    worst_case_units: str
    worst_case_total_units: str
    values_sha256: str
    private_digest: str | None
    previous_hash: str | None
    hash: str | None
    is_checkable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The public epoch that has begun."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrincipal:
    """A principal that has just been made, with its key, shown once."""

    id: UUID
    role: Role
    name: str
    dataset: str | None
    individual: str | None
    allowance_rho: str | None
    key: str = field(repr=False)

    @classmethod
    def of(cls, principal: Principal, key: str) -> Self:
        """The principal, and the key, which is never shown again."""
        units = principal.allowance_units
        return cls(
            id=principal.id,
            role=principal.role,
            name=principal.name,
            dataset=principal.dataset,
            individual=principal.individual,
            allowance_rho=None if units is None else str(rho_of_units(units)),
            key=key,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualsKey:
    """The key of one individual, shown once."""

    individual: str
    api_key: str = field(repr=False)


def _may_be_absent(schema: JsonDict) -> None:
    """A member that is left out has no default."""
    schema.pop("default", None)


_ABSENT = Field(default=None, json_schema_extra=_may_be_absent)
Bound = int | str
"""Of a number, or of a date or a time as text."""


class CoordinateLabel(BaseModel):
    """The name of one number of an answer: its select item, and the value of each column that it is grouped by.

    A label of a histogram also has the histogram's column with a value of its domain.
    """

    __pydantic_extra__: dict[str, bool | int | str]
    model_config = ConfigDict(extra="allow")

    select: str


class GroupAxis(BaseModel):
    """A column by which the numbers of an answer are grouped, or whose domain a histogram counts.

    A column of numbers or times has `lower` and `upper`; a category or a boolean its `categories`, but for categories
    that are numbers below `size` and for more than 1,000; a bin or a bucket of the column has its `edges`, its `width`
    or its unit `by`.
    """

    model_config = ConfigDict(extra="forbid")

    column: str
    size: int
    lower: Bound | SkipJsonSchema[None] = _ABSENT
    upper: Bound | SkipJsonSchema[None] = _ABSENT
    categories: list[bool | Bound] | SkipJsonSchema[None] = _ABSENT
    edges: list[float | str] | SkipJsonSchema[None] = _ABSENT
    width: float | SkipJsonSchema[None] = _ABSENT
    by: str | SkipJsonSchema[None] = _ABSENT


class SelectedItem(BaseModel):
    """The numbers of one select item within each group; those of a histogram are named by `values`."""

    model_config = ConfigDict(extra="forbid")

    select: str
    offset: int
    size: int
    values: GroupAxis | SkipJsonSchema[None] = _ABSENT


class SelectAxis(BaseModel):
    """The innermost axis: the select items in their order."""

    model_config = ConfigDict(extra="forbid")

    select: list[SelectedItem]


class BurnFacts(BaseModel):
    """The reason of a burn."""

    why: str
    units: str


class BurnReason(BaseModel):
    """The place of a query in a burn: an entry that charges every individual for answers that were forgotten."""

    burn: BurnFacts


def for_curator(view: DatasetView) -> CuratorDataset:
    """All of it."""
    return CuratorDataset(**_shallow(view.public), **_shallow(view.counts))


def without_counts(row: LedgerRow) -> AuditedRow:
    """A ledger row as an auditor sees it."""
    told = {each.name: getattr(row, each.name) for each in fields(AuditedRow)}
    if not row.is_checkable:
        told |= {"previous_hash": None, "private_digest": None}
    if row.format == 1:
        told |= {"hash": None}
    return AuditedRow(**told)


def _shallow(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    return {each.name: getattr(value, each.name) for each in fields(value)}
