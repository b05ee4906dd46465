"""An individual's own account: budgets, receipts, and the means to stop further spending."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from sparing._constants import PAGE_SIZE
from sparing._decode import read
from sparing._models import IndividualBudget, Receipt
from sparing._retry import Repeat
from sparing._sender import Sender, path

__all__ = ["Me"]


class Me:
    """`client.me`: the key says whose account it is."""

    def __init__(self, sender: Sender) -> None:
        """Send through `sender`."""
        self._sender = sender

    def budgets(self) -> tuple[IndividualBudget, ...]:
        """The promise and the spent total, per dataset."""
        return tuple(read(IndividualBudget, item) for item in self._sender.pages(path("me", "budgets")))

    def receipts(self, *, page_size: int = PAGE_SIZE) -> Iterator[Receipt]:
        """The charge of each query, newest first, fetched page by page as they are consumed."""
        return (read(Receipt, item) for item in self._sender.pages(path("me", "receipts"), limit=page_size))

    def lower(
        self, *, dataset: str, limit_rho: float | Decimal | str | None = None, pause: bool = False
    ) -> IndividualBudget:
        """Lower the limit to `limit_rho`, which can never be raised again; or pause until `resume`.

        Nothing is spent during a pause: the individual takes part in no query.

        Raises:
            ValueError: neither, or both, are given.
        """
        if (limit_rho is None) != pause:
            raise ValueError("give either limit_rho or pause=True")
        body: dict[str, object] = {"pause": True} if limit_rho is None else {"limit_rho": str(limit_rho)}
        # A repeated request has no further effect.
        reply = self._sender.post(path("me", "budgets", dataset, "lower"), body, repeat=Repeat.READ)
        return read(IndividualBudget, reply)

    def resume(self, *, dataset: str) -> IndividualBudget:
        """End a pause. A lowered limit stays lowered; without a pause nothing changes."""
        reply = self._sender.post(path("me", "budgets", dataset, "resume"), repeat=Repeat.READ)
        return read(IndividualBudget, reply)

    def record(self, *, dataset: str) -> Mapping[str, object]:
        """One's own record as the service holds it: by table, the number of rows and the rows."""
        reply = self._sender.get(path("me", "record", dataset))
        return reply if isinstance(reply, Mapping) else {}

    def request_erasure(self, *, dataset: str) -> None:
        """Ask the curator for an erasure; repeating this changes nothing."""
        self._sender.post(path("me", "erasure", dataset), repeat=Repeat.READ)
