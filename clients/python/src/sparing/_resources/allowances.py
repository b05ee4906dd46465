"""An analyst's own allowances."""

from sparing._models import Allowance
from sparing._sender import Sender
from sparing._verbs.allowances import allowances


class Allowances:
    """`client.allowances`."""

    def __init__(self, sender: Sender) -> None:
        """Send through `sender`."""
        self._sender = sender

    def list(self) -> tuple[Allowance, ...]:
        """The worst-case charge that the analyst may cause, has caused, and has left, for each dataset."""
        return self._sender.run(allowances())
