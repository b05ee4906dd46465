"""What is sent where a workflow's view is not sent as it is: a reader gets the part that is that reader's to see."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field

from service.core.units import rho_of_units
from service.workflows.ledger import Kind
from service.workflows.views import DatasetView, LedgerRow, Principal, PublicDataset, Role

Rho = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False, max_digits=60)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratedDataset(PublicDataset):
    """A dataset as its curators see it: the public part, the ledger's sequence and the counts."""

    sequence: int
    individuals: int
    rows: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRow:
    """One entry of the ledger without the number of people it charged and left out."""

    sequence: int
    query_id: UUID
    analyst: str
    query: dict[str, object]
    sigma: float
    grid: float
    dimension: int
    worst_case_rho: str
    asked_at: datetime
    epoch: int
    previous_hash: str
    hash: str
    kind: Kind


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
        """The principal, and the key that nobody will see again."""
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


def for_curator(view: DatasetView) -> CuratedDataset:
    """All of it."""
    return CuratedDataset(**_shallow(view.public), **_shallow(view.counts))


def without_counts(row: LedgerRow) -> AuditedRow:
    """A ledger row as an auditor sees it."""
    return AuditedRow(**{each.name: getattr(row, each.name) for each in fields(AuditedRow)})


def _shallow(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    return {each.name: getattr(value, each.name) for each in fields(value)}
