"""An individual's own account: budgets, receipts, and the means to stop further spending."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from sparing._constants import PAGE_SIZE
from sparing._models import IndividualBudget, Receipt
from sparing._sender import Sender
from sparing._verbs import me


class Me:
    """`client.me`: the account of the individual whose API key the client has."""

    def __init__(self, sender: Sender) -> None:
        """Send through `sender`."""
        self._sender = sender

    def budgets(self) -> tuple[IndividualBudget, ...]:
        """The promise and the spent total in each dataset."""
        return self._sender.run(me.budgets())

    def receipts(self, *, page_size: int = PAGE_SIZE) -> Iterator[Receipt]:
        """The individual's receipts, a receipt for each query, newest first; pages are fetched as they are consumed."""
        return self._sender.each(me.receipts(page_size))

    def lower(
        self, *, dataset: str, limit_rho: float | Decimal | str | None = None, pause: bool = False
    ) -> IndividualBudget:
        """Lower the limit to `limit_rho` for good, or pause until `resume`.

        Nothing is spent during a pause: the individual takes part in no query.

        Raises:
            ValueError: both `limit_rho` and `pause` are given, or neither.
        """
        return self._sender.run(me.lower(dataset, limit_rho, pause=pause))

    def pause(self, *, dataset: str) -> IndividualBudget:
        """Take part in no query until `resume`."""
        return self._sender.run(me.lower(dataset, None, pause=True))

    def resume(self, *, dataset: str) -> IndividualBudget:
        """End a pause, if there is one. A lowered limit stays lowered."""
        return self._sender.run(me.resume(dataset))

    def record(self, *, dataset: str) -> Mapping[str, object]:
        """The individual's own record as the service holds it: for each table, the number of rows and the rows."""
        return self._sender.run(me.record(dataset))

    def erasure_requested(self, *, dataset: str) -> bool:
        """Tell whether the individual has asked the curator for an erasure."""
        return self._sender.run(me.erasure_requested(dataset))

    def request_erasure(self, *, dataset: str) -> None:
        """Ask the curator for an erasure; repeating this changes nothing."""
        self._sender.run(me.request_erasure(dataset))
