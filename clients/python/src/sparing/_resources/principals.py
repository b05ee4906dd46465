"""Principals, for curators: their roles and API keys."""

from decimal import Decimal
from typing import Literal

from sparing._decode import read
from sparing._models import PrincipalKey
from sparing._retry import Repeat
from sparing._sender import Request, Sender, path

__all__ = ["Principals"]

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
        allowance_rho: float | Decimal | str | None = None,
    ) -> PrincipalKey:
        """Make a principal. The response holds its key, which is never shown again.

        Args:
            role: the role, which decides its rights.
            name: a name for people; the ledger shows it.
            dataset: the only dataset it may touch; an individual needs one.
            individual: the individual whose account the key shows.
            allowance_rho: an analyst's bound on the sum of worst-case charges; None for no bound.
        """
        given = {"role": role, "name": name, "dataset": dataset, "individual": individual}
        body = {field: value for field, value in given.items() if value is not None}
        if allowance_rho is not None:
            body["allowance_rho"] = str(allowance_rho)
        return read(PrincipalKey, self._sender.post(path("principals"), body))

    def revoke(self, *, principal: str) -> None:
        """Revoke a principal's key, for good; `principal` is its id."""
        self._sender.send(Request(method="DELETE", path=path("principals", principal), repeat=Repeat.READ))
