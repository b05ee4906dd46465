"""The look-up of credentials: all that wait at one moment share one statement in one thread.

So an unknown credential costs no thread and no session. A good one waits for one statement before its own, however many
others come. The number of those recognised lately is not bounded; `strangers_max` of the others may wait.
"""

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Protocol

from service.api.place import Place
from service.ledger.model.errors import TooManyStrangers
from service.ledger.model.views import Principal

BATCH_MAX: Final = 256
"""How many familiar credentials share one look-up, and how many of strangers."""


class Recogniser(Hashable, Protocol):
    """Knows the principals of one kind of credential: `Replica.principals` for keys, `Replica.sign_ins` for tokens."""

    def remembered(self, text: str, /) -> Principal | None:
        """The principal, if it was recognised a moment ago. Reads no database."""

    def is_familiar(self, text: str, /) -> bool:
        """Tell whether this process has recognised the credential lately, even if it has ended since.

        Reads no database.
        """

    def authenticate_all(self, texts: Sequence[str], /) -> list[Principal | None]:
        """The principal of each; None for a credential that is not known."""

    def standing_all(self, texts: Sequence[str], /) -> list[Principal | None]:
        """The present principals of credentials by the database. This does not count as a use of the credentials."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The proof of its principal that a request holds, and the recogniser that knows it."""

    text: str
    recogniser: Recogniser


class _Inquiry(NamedTuple):
    credential: Credential
    is_use: bool


_Waiting = dict[_Inquiry, "asyncio.Future[Principal | None]"]


class Lookups:
    """Looks up many credentials together. Belongs to one event loop."""

    def __init__(self, place: Place, *, strangers_max: int) -> None:
        self._place, self._strangers_max = place, strangers_max
        self._familiar: _Waiting = {}
        self._strangers: _Waiting = {}
        self._task: asyncio.Task[None] | None = None

    async def of(self, credential: Credential, *, is_use: bool = True) -> Principal | None:
        """The principal, by a look-up that begins after this call; None for an unknown credential.

        Requests with the same credential share one look-up. Raises TooManyStrangers, StoreUnavailable.
        """
        is_familiar = credential.recogniser.is_familiar(credential.text)
        waiting, asked = self._familiar if is_familiar else self._strangers, _Inquiry(credential, is_use)
        found = waiting.get(asked)
        if found is None:
            if not is_familiar and len(waiting) >= self._strangers_max:
                raise TooManyStrangers(self._strangers_max)
            loop = asyncio.get_running_loop()
            found = waiting[asked] = loop.create_future()
            if self._task is None:
                self._task = loop.create_task(self._look_up_waiting())
        return await asyncio.shield(found)  # one that goes takes nothing from the others

    async def _look_up_waiting(self) -> None:
        try:
            while self._familiar or self._strangers:
                batch = _taken(self._familiar) | _taken(self._strangers)
                try:
                    found = await self._place.run(None, partial(_look_up, list(batch)))
                except Exception as error:  # noqa: BLE001 - each that waits gets it
                    for waiting in batch.values():
                        waiting.set_exception(error)
                else:
                    for asked, waiting in batch.items():
                        waiting.set_result(found[asked])
        finally:
            self._task = None


def _taken(waiting: _Waiting) -> _Waiting:
    """Take out the first BATCH_MAX of those that wait, and return them."""
    return {asked: waiting.pop(asked) for asked in list(islice(waiting, BATCH_MAX))}


def _look_up(batch: Sequence[_Inquiry]) -> dict[_Inquiry, Principal | None]:
    """The principals of a batch, by one look-up for each kind of credential, apart for uses and for mere checks."""
    found: dict[_Inquiry, Principal | None] = {}
    for recogniser, is_use in {(asked.credential.recogniser, asked.is_use) for asked in batch}:
        same = [each for each in batch if (each.credential.recogniser, each.is_use) == (recogniser, is_use)]
        look_up = recogniser.authenticate_all if is_use else recogniser.standing_all
        found |= dict(zip(same, look_up([each.credential.text for each in same]), strict=True))
    return found
