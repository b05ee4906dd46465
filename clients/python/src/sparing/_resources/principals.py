"""Principals, for curators: their roles and API keys."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypedDict, Unpack
from urllib.parse import urlencode

from sparing._constants import PAGE_SIZE
from sparing._decode import read
from sparing._models import IndividualKey, PrincipalKey, PrincipalRow
from sparing._retry import Repeat
from sparing._sender import Request, Sender, path

__all__ = ["Principals"]


class Details(TypedDict, total=False):
    """The facts of a principal that may change."""

    allowance_rho: float | Decimal | str | None
    organisation: str | None
    purpose: str | None
    expires_at: datetime | None


class Changes(Details, total=False):
    """The same, and the name."""

    name: str


Role = Literal["curator", "analyst", "individual", "auditor"]


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
        individual: str | None = None,
        **details: Unpack[Details],
    ) -> PrincipalKey:
        """Make a principal. The response holds its key, which is never shown again.

        Args:
            role: the role, which decides its rights.
            name: a name for people; the ledger shows it.
            dataset: the only dataset it may touch; an individual needs one.
            individual: the individual whose account the key shows; it must be in the dataset.
            details: `allowance_rho`, an analyst's bound on the sum of worst-case charges, None for no bound;
                `organisation` and `purpose`, which individuals read in their receipts; `expires_at`.
        """
        given = {"role": role, "name": name, "dataset": dataset, "individual": individual, **_wire(details)}
        body = {field: value for field, value in given.items() if value is not None}
        return read(PrincipalKey, self._sender.post(path("principals"), body))

    def create_for(
        self, *, dataset: str, individuals: Iterable[str], expires_at: datetime | None = None
    ) -> tuple[IndividualKey, ...]:
        """Make a key for each of many individuals, all or none, at most 100,000; each is shown this once."""
        query = "" if expires_at is None else f"?{urlencode({'expires_at': expires_at.isoformat()})}"
        where = path("datasets", dataset, "individuals", "keys") + query
        reply = self._sender.post(where, list(individuals))
        return tuple(read(IndividualKey, each) for each in reply) if isinstance(reply, list) else ()

    def list(self, *, page_size: int = PAGE_SIZE) -> Iterator[PrincipalRow]:
        """Every principal, active or revoked, fetched page by page as they are consumed."""
        return (read(PrincipalRow, item) for item in self._sender.pages(path("principals"), limit=page_size))

    def change(self, *, principal: str, **changes: Unpack[Changes]) -> PrincipalRow:
        """Change what is given of a principal, from its next request on; None removes a bound or a description."""
        return read(PrincipalRow, self._sender.patch(path("principals", principal), _wire(changes)))

    def replace_key(self, *, principal: str) -> PrincipalKey:
        """Replace a principal's key; the old one ends. The new one is shown this once."""
        return read(PrincipalKey, self._sender.post(path("principals", principal, "key")))

    def revoke(self, *, principal: str) -> None:
        """Revoke a principal's key, for good; `principal` is its id."""
        self._sender.send(Request(method="DELETE", path=path("principals", principal), repeat=Repeat.READ))


def _wire(details: Mapping[str, object]) -> dict[str, object]:
    """The details as JSON has them."""
    found = dict(details)
    if found.get("allowance_rho") is not None:
        found["allowance_rho"] = str(found["allowance_rho"])
    if isinstance(expires_at := found.get("expires_at"), datetime):
        found["expires_at"] = expires_at.isoformat()
    return found
