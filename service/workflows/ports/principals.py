"""The port of the table of principals, and of what analysts' queries may have cost."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from service.workflows.model.rows import PrincipalRecord


class PrincipalTable(Protocol):
    """The principals, durable."""

    def add(self, records: Sequence[PrincipalRecord]) -> None:
        """Keep new principals, all or none."""

    def find(self, principal_id: UUID) -> PrincipalRecord | None:
        """One principal, revoked or not."""

    def some(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        """Those of these principals that are known, in no order."""

    def listed(self, *, after: UUID | None, limit: int) -> list[PrincipalRecord]:
        """The principals in order of id."""

    def analysts_of(self, dataset: str) -> list[PrincipalRecord]:
        """The analysts that may ask a dataset, revoked ones too, by name."""

    def change(self, record: PrincipalRecord) -> bool:
        """Replace what may change of a principal: all but id, role, dataset and individual.

        False, and nothing, when it is unknown or revoked.
        """

    def revoke(self, principal_id: UUID, at: datetime) -> bool:
        """Revoke; False when unknown or revoked before."""
