"""Principals, for curators: their roles and API keys."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Unpack

from sparing._constants import PAGE_SIZE
from sparing._models import IndividualKey, PrincipalKey, PrincipalRow
from sparing._sender import Sender
from sparing._verbs import principals
from sparing._verbs.principals import Changes, Details, Role


class Principals:
    """`client.principals`."""

    def __init__(self, sender: Sender) -> None:
        """Send through `sender`."""
        self._sender = sender

    def create(
        self,
        *,
        role: Role,
        name: str,
        dataset: str | None = None,
        individual: str | int | None = None,
        **details: Unpack[Details],
    ) -> PrincipalKey:
        """Make a principal. The response holds its key, which is never shown again.

        Args:
            role: the role, which decides what the key may do.
            name: a name for people; the ledger shows it.
            dataset: the only dataset that the key serves; required for an individual.
            individual: the key of the individual whose account the new API key shows; it must be in the dataset.
            details: `allowance_rho`, the bound on the sum of an analyst's worst-case charges, or None; `organisation`
                and `purpose`, which individuals read in their receipts; and `expires_at`.
        """
        return self._sender.run(principals.create(role, name, dataset, individual, details))

    def create_for(
        self, *, dataset: str, individuals: Iterable[str | int], expires_at: datetime | None = None
    ) -> tuple[IndividualKey, ...]:
        """Make an API key for each of at most 100,000 individuals, all or none. The keys are never shown again."""
        return self._sender.run(principals.create_for(dataset, individuals, expires_at))

    def list(
        self,
        *,
        role: Role | None = None,
        dataset: str | None = None,
        search: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Iterator[PrincipalRow]:
        """Every principal, active or revoked, fetched page by page as they are consumed.

        `role` keeps the principals of one role, `dataset` those whose keys serve this dataset, and `search` those with
        all of its words.
        """
        return self._sender.each(principals.every(role, dataset, search, page_size))

    def change(self, *, principal: str, **changes: Unpack[Changes]) -> PrincipalRow:
        """Change the given facts about a principal, from its next request on; None removes a bound or a description."""
        return self._sender.run(principals.change(principal, changes))

    def replace_key(self, *, principal: str) -> PrincipalKey:
        """Replace a principal's key. The old key ends at once, and the new key is never shown again."""
        return self._sender.run(principals.replace_key(principal))

    def revoke(self, *, principal: str) -> None:
        """Revoke a principal's key, for good; `principal` is its id."""
        self._sender.run(principals.revoke(principal))
