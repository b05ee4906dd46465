"""Bounds of the HTTP server: times, the number of connections, and which connection makes room for another.

The bound on the number lies below the limit of open files, so that a process in which all connections are taken still
has files for its database and for `/metrics`. Nothing is known of a new client before its request is read. So its
connection is let in, and the oldest connection that no known principal uses is closed in its place.
"""

import logging
import resource
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from service.ledger.ports.telemetry import Telemetry
from service.settings.settings import Settings

log = logging.getLogger("sparing.http")

End = Literal["silent", "slow", "unread", "evicted", "refused"]
"""Why a connection was ended: nothing came; the request came too slowly; the response was not taken; it made room for
another; there was no room for it."""

CONNECTIONS_MAX: Final = 10_000
FILES_RESERVED_MIN: Final = 128
FILES_RESERVED_PART: Final = 4
"""One in FILES_RESERVED_PART open files is kept free of connections, and at least FILES_RESERVED_MIN."""
BACKLOG_MAX: Final = 2048
REPORT_S: Final = 60.0
_RANKED_PART: Final = 16

Rank = tuple[bool, bool, float]
"""(is it a known principal's, is a request under way, since when (s)): connections are closed in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBounds:
    """The bounds of one server.

    `head_s` is the time until a request's headers are whole. `idle_s` is the time between a response and the next
    request. In each span of `body_s`, a body that is waited for must come at BODY_BYTES_PER_S. At most `backlog`
    connections are accepted at once, which may exceed `connections_max` for a moment.
    """

    connections_max: int = CONNECTIONS_MAX
    backlog: int = BACKLOG_MAX
    head_s: float = 10.0
    idle_s: float = 5.0
    body_s: float = 30.0

    @classmethod
    def of(cls, settings: Settings, *, files_max: int | None = None) -> "HttpBounds":
        """The bounds that the settings give, in a process that may open `files_max` files, by default its limit."""
        if files_max is None:
            files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        reserved = max(FILES_RESERVED_MIN, files_max // FILES_RESERVED_PART)
        room = max(files_max - reserved, files_max // 2)
        return cls(
            connections_max=min(settings.http_connections_max or CONNECTIONS_MAX, room),
            backlog=max(min(BACKLOG_MAX, reserved // 2), 1),
            head_s=settings.head_timeout_ms / 1000,
            idle_s=settings.idle_timeout_ms / 1000,
            body_s=settings.body_timeout_ms / 1000,
        )


class Evictable(Protocol):
    """A connection, as the table of connections sees it."""

    @property
    def rank(self) -> Rank | None:
        """The order in which connections are closed, the least rank first; None keeps the connection open."""

    def evict(self) -> None:
        """Close the connection at once."""


class ConnectionTable:
    """Makes room among the connections of one server, and counts the connections that its bounds have ended."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._ranked: list[tuple[Evictable, Rank]] = []  # the next to be closed is the last
        self._ends: Counter[End] = Counter()
        self._refusals: Counter[str] = Counter()
        self._reported_s = -REPORT_S

    def make_room(self, newcomer: Evictable, connections: Collection[Evictable]) -> bool:
        """Close a connection other than the newcomer. False where each has a known principal's request under way.

        Looking at all connections takes long. So each look ranks a part of them, which are closed one by one.
        """
        while self._ranked:
            chosen, place = self._ranked.pop()
            if chosen in connections and chosen.rank == place:
                chosen.evict()
                self.count("evicted")
                return True
        others = [(each, rank) for each in connections if each is not newcomer and (rank := each.rank) is not None]
        others.sort(key=lambda each: each[1])
        self._ranked = others[: max(len(connections) // _RANKED_PART, 1)][::-1]
        return bool(others) and self.make_room(newcomer, connections)

    def count(self, end: End) -> None:
        """Count a connection that was ended."""
        self._ends[end] += 1
        self._telemetry.connection_closed(end)

    def count_refusal(self, slug: str) -> None:
        """Count a request that was refused before the application, which still counts the response to it."""
        self._refusals[slug] += 1

    def report(self, now_s: float) -> None:
        """Log the counts of the last minute in one line, if there are any; `now_s` is of a monotonic clock."""
        counts = {**self._refusals, **{f"{end}-connection": count for end, count in self._ends.items()}}
        if not counts or now_s < self._reported_s + REPORT_S:
            return
        self._reported_s = now_s
        self._ends.clear()
        self._refusals.clear()
        text = ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
        log.warning("requests refused and connections closed: %s", text)
