"""The replies for which a workflow's view is not sent as it is: a reader gets the part that is that reader's to see."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field

from service.core.units import rho_of_units
from service.workflows.model.ledger_entry import Kind
from service.workflows.model.views import DatasetView, LedgerRow, Principal, PublicDataset, Role

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
