"""Counts for the operator while the replica works.

None of them comes from a record, except those of a curator's alarms.

Readers of metrics are not trusted with data. So no method takes a charge, a number of people, the name of a dataset or
the length of an evaluation, and an adapter cannot show what it never received. Even so, the counts of late work and of
acts are not public (`service.metrics` sorts all counts).
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal

Commit = Literal["questions", "act", "checkpoint"]
"""The content of a commit, as the label of its count; `questions` are queries."""


class Telemetry:
    """Receives the counts; this one tells nobody. Methods are called from any thread, and neither block nor raise."""

    def request_began(self) -> None:
        """A request has begun."""

    def request_ended(self, route: str, status: int) -> None:
        """A request has ended with `status`; `route` is the template of its path, never the path."""

    def connection_closed(self, kind: str) -> None:
        """The server has ended a client's connection; `kind` is the reason, from a short list."""

    def headers_dropped(self, headers: int) -> None:
        """A number of headers of a request, `headers`, were not passed on to the process that owns the dataset."""

    def slot_overrun(self) -> None:
        """A response was not ready at its instant and leaves at a later instant."""

    def batched(self, requests: int) -> None:
        """A batch has shared one transaction; `requests` is the number of its queries."""

    def committed(self, kind: Commit) -> None:
        """A transaction is durable."""

    def commit_unclear(self) -> None:
        """A COMMIT was sent and no clear reply came; the idempotency keys will show whether it took effect."""

    def alarm_rang(self) -> None:
        """A budget alarm that a curator has set has rung."""

    def checkpointing(self) -> AbstractContextManager[None]:
        """Around the writing of a checkpoint, which may be timed: it follows the answers and delays none."""
        return nullcontext()


NULL_TELEMETRY: Final = Telemetry()
