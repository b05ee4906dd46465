"""Runs of `sparing-client` against a fake service, in this process."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparing import dummy_data
from sparing._cli import main
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "town": {"type": "category", "categories": ["Oslo", "北京"]},
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "member": {"type": "boolean"},
            "limit_rho": {"type": "budget"},
        },
    },
    "visits": {"kind": "events", "key": "person_id", "columns": {"item": {"type": "category", "size": 40_000}}},
}
COUNT = '{"select": [{"count": {}}], "noise": {"sigma": 20}}'


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


def shop() -> FakeService:
    """A fake service with a dataset whose answers are exact."""
    made = FakeService()
    made.add_dataset("shop", TABLES, rows=dummy_data(TABLES, individuals=50), rho=1, limit_floor_rho=1)
    return made


def run_of(fake: FakeService) -> Run:
    """A function that runs a command against the fake service."""

    def ran(*words: str, stdin: str | io.StringIO = "", environ: dict[str, str] | None = None) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        status = main(
            words,
            environ={"SPARING_URL": fake.url, "SPARING_API_KEY": fake.api_key} if environ is None else environ,
            stdin=io.StringIO(stdin) if isinstance(stdin, str) else stdin,
            out=out,
            err=err,
            transport=fake.transport,
            sleep=lambda _: None,
        )
        return Outcome(status=status, out=out.getvalue(), err=err.getvalue())

    return ran
