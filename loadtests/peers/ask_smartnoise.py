"""SmartNoise-SQL answers the tasks: `from_df` and one SQL query each, with the noise that it chooses for counts.

    python -m loadtests.peers.ask_smartnoise people.npz

One row is one person (`row_privacy`), and dimensions are not censored, because every group is declared public
here; censoring would drop the groups of ten people.
"""

import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import snsql  # type: ignore[import-not-found]

from loadtests.peers.tasks import EPSILON, TASKS, Task, Work, loaded, serve

_TABLE = {
    "row_privacy": True,
    "censor_dims": False,
    "rows": TASKS["count"].people,
    "town": {"type": "int"},
    "item": {"type": "int"},
}
SPENDS = 10


def reader_of(frame: pd.DataFrame) -> Any:  # noqa: ANN401 (SmartNoise has no types)
    """A private reader of a frame."""
    privacy = snsql.Privacy(epsilon=EPSILON, delta=1e-6)
    return snsql.from_df(frame, privacy=privacy, metadata={"": {"public": {"people": _TABLE}}})


def works(frame: pd.DataFrame) -> dict[str, Work]:
    """Each task as a function."""
    readers = {people: reader_of(frame[:people]) for people in {task.people for task in TASKS.values()}}
    return {name: partial(_asked, readers[task.people], _sql(task)) for name, task in TASKS.items()}


def _sql(task: Task) -> str:
    if task.column is None:
        return "SELECT COUNT(*) AS n FROM public.people"
    return f"SELECT {task.column}, COUNT(*) AS n FROM public.people GROUP BY {task.column}"  # noqa: S608 (constants)


def _asked(reader: Any, sql: str) -> list[float]:  # noqa: ANN401
    return [row[-1] for row in reader.execute(sql)[1:]]


def facts(frame: pd.DataFrame) -> dict[str, object]:
    """The rows of groups without people, and where the spent total is kept."""
    sparse = reader_of(frame.assign(item=frame["item"] // 2 * 2))
    reader = reader_of(frame)
    for _ in range(SPENDS):
        _asked(reader, _sql(TASKS["count"]))
    return {
        "rows where 5,000 of 10,000 groups are empty": len(_asked(sparse, _sql(TASKS["vector"]))),
        f"epsilon spent by a reader after {SPENDS} counts": round(float(reader.odometer.spent[0]), 3),
        "epsilon spent by a new reader of the same data": float(reader_of(frame).odometer.spent[0]),
    }


def main(arguments: list[str]) -> None:
    """Answer tasks until stdin ends."""
    frame = pd.DataFrame(loaded(Path(arguments[0])))
    about = {
        "version": f"SmartNoise-SQL {version('smartnoise-sql')} with OpenDP {version('opendp')}",
        "noise": f"Laplace, epsilon {EPSILON:g}, by OpenDP",
    }
    serve(about, works(frame), partial(facts, frame))


if __name__ == "__main__":
    main(sys.argv[1:])
