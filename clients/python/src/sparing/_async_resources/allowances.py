"""An analyst's own allowances."""

from sparing._async_sender import AsyncSender
from sparing._models import Allowance
from sparing._verbs.allowances import allowances


class AsyncAllowances:
    """`client.allowances`."""

    def __init__(self, sender: AsyncSender) -> None:
        """Send through `sender`."""
        self._sender = sender

    async def list(self) -> tuple[Allowance, ...]:
        """The worst-case charge that the analyst may cause, has caused, and has left, for each dataset."""
        return await self._sender.run(allowances())
