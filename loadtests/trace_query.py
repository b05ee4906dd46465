"""The files and functions of ours that one query visits in a running server, on all of its threads.

    python -m loadtests.trace_query            # the figures
    python -m loadtests.trace_query --list     # and every function, in the order of the first visit

The server runs in this process, on embedded servers in a temporary home, with release slots. A profiler on each thread
counts calls from the client's request to its response. The query with the fewest calls counts, because background work
may fall into the others. It is measured for texts that are all different, and for one text asked again.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import httpx

import service
from loadtests.rig import throw_away_home
from service.run.serve import serving
from service.settings import Settings

SOURCE = f"{Path(service.__file__).parent}{os.sep}"
WARM_UP, QUERIES = 20, 15
DATASET = {
    "name": "care",
    "guarantee": {"epsilon": 1, "delta": 1e-6},
    "capacity": 1000,
    "tables": {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}},
        }
    },
}


class Trace:
    """Calls of our own functions while `is_on`, in the order of their first visit. One for all threads."""

    def __init__(self) -> None:
        self.is_on = False
        self.visits: dict[tuple[str, str], int] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG002 - a profiler's signature
        """Count one event of a thread."""
        code = frame.f_code
        if self.is_on and event == "call" and code.co_filename.startswith(SOURCE) and not code.co_name.startswith("<"):
            place = code.co_filename.removeprefix(SOURCE), code.co_qualname
            self.visits[place] = self.visits.get(place, 0) + 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the calls of a block, and no other."""
        self.visits = {}
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


def traced(trace: Trace, *, different: bool) -> list[dict[tuple[str, str], int]]:
    """The visits of each of QUERIES sparse counts, none like another or all alike, asked one after the other."""
    with (
        throw_away_home() as home,
        serving(Settings.of({"SPARING_HOME": str(home)}), host="127.0.0.1", port=0) as (url, replica),
    ):
        keys = [replica.principals.create(role=role, name=role)[1] for role in ("curator", "analyst")]
        curator, analyst = (
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) for key in keys
        )
        with curator, analyst:
            curator.post("/v1/datasets", json=DATASET).raise_for_status()
            rows = "id,age\n" + "".join(f"p{n},{n % 120}\n" for n in range(1000))
            curator.post(
                "/v1/datasets/care/tables/people/rows", content=rows, headers={"Content-Type": "text/csv"}
            ).raise_for_status()
            found = []
            for number in range(WARM_UP + QUERIES):
                body = {
                    "version": 1,
                    "select": [{"count": {}}],
                    "where": {"eq": [{"col": "age"}, number if different else 7]},
                    "noise": {"sigma": 50.0},
                    "reuse": False,
                }
                with trace.counting():
                    analyst.post(
                        "/v1/datasets/care/queries", json=body, headers={"Idempotency-Key": f"k{number}"}
                    ).raise_for_status()
                found.append(trace.visits)
    return found[WARM_UP:]


def main() -> None:
    """Print the figures, and with --list the visits behind them."""
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    for name, different in (("different texts", True), ("one text", False)):
        visits = min(traced(trace, different=different), key=lambda each: sum(each.values()))
        files = {path for path, _ in visits}
        print(f"{name}: files {len(files)}, functions {len(visits)}, calls {sum(visits.values())}")
        if "--list" in sys.argv:
            for (path, function), count in visits.items():
                print(f"service/{path} {function} {count}")
    sys.setprofile(None)


if __name__ == "__main__":
    main()
