"""Counts for the operator while the replica works. None of them comes from a record, but for a curator's alarms.

Readers of metrics are not trusted with data. So no method here takes a charge, a number of people, the name of a
dataset or the length of an evaluation, and an adapter cannot show what it was never told. Not all of it is public all
the same: work that is late, and acts, are told too (`service.metrics` sorts them).
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal

Commit = Literal["questions", "act", "checkpoint"]
"""The content of a commit, by the label of its count; `questions` are queries."""


class Telemetry:
    """Receives the counts; this one tells nobody. Methods are called from any thread, and neither block nor raise."""

    def request_began(self) -> None:
        """A request has begun."""

    def request_ended(self, route: str, status: int) -> None:
        """A request has ended with `status`; `route` is the template of its path, never the path."""

    def connection_closed(self, kind: str) -> None:
        """The server has ended a client's connection, for a reason of a short list."""

    def headers_dropped(self, headers: int) -> None:
        """Some headers of a request were not passed on to the process that owns its dataset."""

    def slot_overrun(self) -> None:
        """A response was not ready at its instant and leaves at a later one."""

    def batched(self, requests: int) -> None:
        """The number of queries that shared one transaction."""

    def committed(self, kind: Commit) -> None:
        """A transaction is durable."""

    def commit_unclear(self) -> None:
        """A COMMIT was sent and no clear reply came; the keys will tell."""

    def alarm_rang(self) -> None:
        """A budget alarm that a curator has set has rung."""

    def checkpointing(self) -> AbstractContextManager[None]:
        """Around the writing of a checkpoint, which may be timed: it follows the answers and delays none."""
        return nullcontext()


NULL_TELEMETRY: Final = Telemetry()
