"""`sparing serve`, with every public event of its schedule written to a file when it ends.

    python -m tests.leaks.observed HOME FILE [PLANT]

The schedule tells a hook what it is told itself: arrivals, disconnects, and which slots a request got. A test compares
that with what it computes from the arrivals, the disconnects and the public costs alone (`tests.leaks.oracle`).
"""

import json
import os
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

from starlette.types import Scope

from service.api.middleware.release_slots import ReleaseSlots
from service.run import adapters
from service.run.serve import serve
from service.settings.settings import Settings
from service.writer.admission.schedule import SlotRequest, SlotRules
from service.writer.admission.scheduler import Scheduler
from service.writer.submission import Submission

FORMER_SLOTS = "former-slots"


class Events:
    """The events of the schedule, in order; requests and datasets are numbered as they are first seen."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._numbers: dict[str, dict[object, int]] = {"request": {}, "principal": {}, "dataset": {}}
        self._kept: list[SlotRequest] = []  # so that no two have the same identity

    def scheduler(self, rules: SlotRules, **more: Any) -> Scheduler:
        """A schedule that is listened to."""
        self.events.append({"event": "rules", **asdict(rules)})
        return Scheduler(rules, observe=self.observe, **more)

    def observe(self, request: SlotRequest, event: str) -> None:
        """Note one event of a request."""
        self._kept.append(request)
        told: dict[str, Any] = {"event": event, "request": self._number("request", id(request))}
        if event == "arrived":
            told |= {
                "principal": self._number("principal", request.principal),
                "dataset": None if request.commits_to is None else self._number("dataset", request.commits_to),
                "cost_ns": request.cost.time_ns,
                "arrived_ns": request.arrived_ns,
                "leave_before_ns": request.leave_before_ns,
                "key": key_of(request),
            }
        elif event == "cancelled":
            told |= {"cancelled_ns": request.cancelled_ns}
        elif request.reservation is not None:
            told |= {"begins_ns": request.reservation.begins_ns, "leaves_ns": request.reservation.leaves_ns}
        self.events.append(told)

    def _number(self, kind: str, thing: object) -> int:
        return self._numbers[kind].setdefault(thing, len(self._numbers[kind]))


def key_of(request: Any) -> str | None:
    """The key of the first query of a request; None for a read."""
    return request.job.requests[0].key if isinstance(request.job, Submission) else None


async def hold_as_formerly(self: ReleaseSlots, _scope: Scope, arrived_ns: int, _whole_ns: int) -> None:
    """Plant the former rule: a response leaves a whole number of slots after its arrival, as soon as it is ready."""
    over_ns = (self.clock.now_ns() - arrived_ns) % self.slots.length_ns
    await self.clock.until(self.clock.now_ns() + self.slots.length_ns - over_ns)


def main(home: str, file: str, plant: str = "") -> None:
    """Serve until SIGTERM, then write."""
    events = Events()
    with ExitStack() as patched:
        patched.enter_context(patch.object(adapters, "Scheduler", events.scheduler))
        if plant == FORMER_SLOTS:
            patched.enter_context(patch.object(ReleaseSlots, "_hold", hold_as_formerly))
        settings = Settings.of(os.environ, home=Path(home))
        serve(settings, host="127.0.0.1", port=0, ready=tell("ready"), measured=tell("metrics"))
    Path(file).write_text(json.dumps(events.events))


def tell(word: str) -> Any:
    """The lines with a word and an address."""
    return lambda url: print(word, url, flush=True)  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    main(*sys.argv[1:])
