"""Connections to other processes between two requests; each carries the requests of one principal only.

So a reply to the wrong request could only be a reply to the same principal.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from service.api.forwarding.connection import PeerConnection

IDLE_S: Final = 3.0
"""A connection kept for longer is not used again: uvicorn ends one on which nothing has come for five seconds."""
KEPT_MAX: Final = 512
"""How many connections are kept; beyond that the one that was put back first is closed."""

ConnectionKey = tuple[UUID, UUID]
"""The replica to which a connection leads, and the principal whose requests it carries."""


class IdleConnections:
    """The connections that are kept. Belongs to one event loop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` counts seconds."""
        self._clock = clock
        self._since: dict[PeerConnection, tuple[ConnectionKey, float]] = {}  # the longest kept first
        self._of: dict[ConnectionKey, list[PeerConnection]] = {}

    def put(self, key: ConnectionKey, connection: PeerConnection) -> None:
        """Keep a connection, and close those that are too old or too many."""
        self._since[connection] = key, self._clock()
        self._of.setdefault(key, []).append(connection)
        while len(self._since) > KEPT_MAX or not self._is_fresh(next(iter(self._since))):
            oldest = next(iter(self._since))
            self._remove(oldest)
            oldest.close()

    def take(self, key: ConnectionKey) -> PeerConnection | None:
        """The connection of this key that was put back last, if it can still be used."""
        while connections := self._of.get(key):
            connection = connections[-1]
            is_fresh = self._is_fresh(connection)
            self._remove(connection)
            if is_fresh and not connection.is_lost:
                return connection
            connection.close()
        return None

    def _is_fresh(self, connection: PeerConnection) -> bool:
        return self._clock() < self._since[connection][1] + IDLE_S

    def _remove(self, connection: PeerConnection) -> None:
        key, _ = self._since.pop(connection)
        self._of[key].remove(connection)
        if not self._of[key]:
            del self._of[key]
