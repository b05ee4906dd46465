"""An individual's own account: budgets, receipts, and the means to stop further spending."""

from collections.abc import AsyncIterator, Mapping
from decimal import Decimal

from sparing._async_sender import AsyncSender
from sparing._constants import PAGE_SIZE
from sparing._models import IndividualBudget, Receipt
from sparing._verbs import me


class AsyncMe:
    """`client.me`: the account of the individual whose API key the client has."""

    def __init__(self, sender: AsyncSender) -> None:
        """Send through `sender`."""
        self._sender = sender

    async def budgets(self) -> tuple[IndividualBudget, ...]:
        """The promise and the spent total in each dataset."""
        return await self._sender.run(me.budgets())

    def receipts(self, *, page_size: int = PAGE_SIZE) -> AsyncIterator[Receipt]:
        """The individual's receipts, a receipt for each query, newest first; pages are fetched as they are consumed."""
        return self._sender.each(me.receipts(page_size))

    async def lower(
        self, *, dataset: str, limit_rho: float | Decimal | str | None = None, pause: bool = False
    ) -> IndividualBudget:
        """Lower the limit to `limit_rho` for good, or pause until `resume`.

        Nothing is spent during a pause: the individual takes part in no query.

        Raises:
            ValueError: both `limit_rho` and `pause` are given, or neither.
        """
        return await self._sender.run(me.lower(dataset, limit_rho, pause=pause))

    async def pause(self, *, dataset: str) -> IndividualBudget:
        """Take part in no query until `resume`."""
        return await self._sender.run(me.lower(dataset, None, pause=True))

    async def resume(self, *, dataset: str) -> IndividualBudget:
        """End a pause, if there is one. A lowered limit stays lowered."""
        return await self._sender.run(me.resume(dataset))

    async def record(self, *, dataset: str) -> Mapping[str, object]:
        """The individual's own record as the service holds it: for each table, the number of rows and the rows."""
        return await self._sender.run(me.record(dataset))

    async def erasure_requested(self, *, dataset: str) -> bool:
        """Tell whether the individual has asked the curator for an erasure."""
        return await self._sender.run(me.erasure_requested(dataset))

    async def request_erasure(self, *, dataset: str) -> None:
        """Ask the curator for an erasure; repeating this changes nothing."""
        await self._sender.run(me.request_erasure(dataset))
