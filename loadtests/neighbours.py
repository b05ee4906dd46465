"""Pairs of datasets that are equal but for one person.

Every other person has k = 1, one row of events and an age from 1 to 118; the one person is 119. So a query of all ages
from 1 on touches consecutive slots, unless the one person is missing. An inverted index is read up to a number of rows,
and exactly that many others have an even code: with one more, all rows are looked at. Each query costs each person one
unit or a few, so that only the one person's account is ever near its limit. In two pairs, which are asked under the
clip rule, all others have nothing left either, in both worlds or in one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from string import ascii_lowercase
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loadtests.rig import Rig, arrow_bytes
from service.engine.pages import pages_for
from service.query.division import PAGE_SLOTS
from service.query.working_memory import SCAN_WORTH

AGE = 119
ROWS_MAX = 4096
CODES = 4096
"""The number of values of the column `code`; half of them are even."""
SPARE = 2000
"""How many slots are left for people that join during an attack."""

VALUE = "k"
LETTERS = tuple(letter for letter in ascii_lowercase if letter != VALUE)
SIGMA = 1e6
PEOPLE_TYPE = "application/vnd.apache.arrow.stream"

SUM: dict[str, Any] = {"select": [{"sum": {"column": VALUE}}]}
COUNT: dict[str, Any] = {"select": [{"count": {}}], "where": {"eq": [{"col": "age"}, AGE]}}
EVENTS: dict[str, Any] = {
    "select": [{"count": {}}],
    "from": "visits",
    "per_individual": {"l2_clip": 8.0},
    "noise": {"sigma": 1e5},  # a sum that is clipped has a grid, and a grid has a largest sigma
}
SUMS: list[dict[str, Any]] = [{"sum": {"column": letter}} for letter in (*ascii_lowercase, "age")]
HISTOGRAMS: list[dict[str, Any]] = [{"histogram": {"column": letter}} for letter in (*ascii_lowercase, "country")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """The differing person. `limit` is a limit in rho that is uploaded with the record."""

    k: int | None = 1
    age: int | None = AGE
    limit: str | None = None
    rows: int = 1
    code: int = 1
    place: Literal["middle", "last"] = "middle"


Act = Callable[[Rig, str], None]
"""The function that acts on the dataset of that name before any query."""


def nothing(_rig: Rig, _dataset: str) -> None:
    """Do nothing: the person stays as uploaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One dataset: the differing person (None if absent), the limit in rho of all others, and the act on it."""

    person: Person | None = field(default_factory=Person)
    act: Act = nothing
    others_limit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two worlds. `planted_ms` is a delay that the attacker adds to every answer of the second world.

    `service` is the module that serves both, and `leak` the variety of `loadtests.leaky_service`.
    """

    name: str
    worlds: tuple[World, World]
    planted_ms: float = 0.0
    service: str = "service"
    leak: str = ""


def query(question: dict[str, Any], **more: object) -> dict[str, Any]:
    """A whole query that is never answered from an earlier one."""
    return {"version": 1, "noise": {"sigma": SIGMA}, "reuse": False, **question, **more}


# Acts


def erase(rig: Rig, dataset: str) -> None:
    """Erase the person, as the curator."""
    rig.curator.delete(f"/v1/datasets/{dataset}/individual?individual=the-one").raise_for_status()


def pause(rig: Rig, dataset: str) -> None:
    """Pause the person."""
    key = individual_key(rig, dataset, "the-one")
    headers = {"Authorization": f"Bearer {key}"}
    rig.analyst.post(f"/v1/me/budgets/{dataset}/lower", json={"pause": True}, headers=headers).raise_for_status()


def pause_and_resume(rig: Rig, dataset: str) -> None:
    """Pause the person, and end the pause."""
    pause(rig, dataset)
    headers = {"Authorization": f"Bearer {individual_key(rig, dataset, 'the-one')}"}
    rig.analyst.post(f"/v1/me/budgets/{dataset}/resume", headers=headers).raise_for_status()


def join(rig: Rig, dataset: str) -> None:
    """Let the person join after all others."""
    append(rig, dataset, "people", people(0, Person()))


def exhaust(rig: Rig, dataset: str) -> None:
    """Ask once: of a limit of one unit, the charge leaves too little for a second query."""
    headers = {"Idempotency-Key": "exhausting", "Authorization": f"Bearer {analyst_key(rig, dataset, 'first')}"}
    rig.analyst.post(f"/v1/datasets/{dataset}/queries", json=query(SUM), headers=headers).raise_for_status()


ONE_UNIT = "1e-12"
"""A limit in rho that pays for one query and not for a second."""
_ONE, _NONE = World(), World(person=None)
_ONE_EXHAUSTED = World(person=Person(limit=ONE_UNIT), act=exhaust)
_OTHERS_EXHAUSTED = World(others_limit=ONE_UNIT, act=exhaust)
_ALL_EXHAUSTED = replace(_ONE_EXHAUSTED, others_limit=ONE_UNIT)
NEIGHBOURS: tuple[Neighbours, ...] = (
    Neighbours(name="other value", worlds=(_ONE, World(person=Person(k=2)))),
    Neighbours(name="blank", worlds=(_ONE, World(person=Person(k=None, age=None)))),
    Neighbours(name="other group", worlds=(_ONE, World(person=Person(age=7)))),
    Neighbours(name="most rows", worlds=(World(person=Person(rows=0)), World(person=Person(rows=ROWS_MAX)))),
    Neighbours(name="left out", worlds=(_ONE, World(person=Person(limit="0")))),
    Neighbours(
        name="highest slot", worlds=(World(person=Person(place="last")), World(person=Person(k=None, place="last")))
    ),
    Neighbours(name="exhausted", worlds=(World(act=exhaust), _ONE_EXHAUSTED)),
    Neighbours(name="paused", worlds=(_ONE, World(act=pause))),
    Neighbours(name="resumed", worlds=(_ONE, World(act=pause_and_resume))),
    Neighbours(name="erased", worlds=(_ONE, World(act=erase))),
    Neighbours(name="joined", worlds=(_NONE, World(person=None, act=join))),
    Neighbours(name="absent", worlds=(_ONE, _NONE)),
    Neighbours(name="listed", worlds=(_ONE, World(person=Person(code=2)))),
)
SHORTENED: tuple[Neighbours, ...] = (
    Neighbours(name="one exhausted", worlds=(World(act=exhaust), _ONE_EXHAUSTED)),
    Neighbours(name="the last exhausted", worlds=(_OTHERS_EXHAUSTED, _ALL_EXHAUSTED)),
    Neighbours(name="all exhausted", worlds=(World(act=exhaust), _ALL_EXHAUSTED)),
)
"""Pairs asked under the clip rule: one person has nothing left, or all people but one have, or all of them."""

EQUAL = Neighbours(name="control: equal", worlds=(_ONE, _ONE))
PLANTED = replace(EQUAL, name="control: planted 2 ms", planted_ms=2.0)
PLANTED_WORK = Neighbours(
    name="control: planted work", worlds=(_ONE, World(act=pause)), service="loadtests.leaky_service"
)
HIDDEN_WORK = replace(PLANTED_WORK, name="work in its slots", leak="priced")
"""Work that depends on data and that the slots hide. No read of any role may tell when that work ends."""

SECOND_CLOCK = replace(PLANTED_WORK, name="control: second clock", leak="clock")
CONTROLS = (EQUAL, PLANTED, PLANTED_WORK, SECOND_CLOCK)


# Making them


def make(rig: Rig, dataset: str, world: World, count: int) -> str:
    """Register, upload and act. Returns the key of an analyst of this dataset alone."""
    rig.curator.post("/v1/datasets", json=registration(dataset, count)).raise_for_status()
    append(rig, dataset, "people", people(count - 1, world.person, limit=world.others_limit))
    rows = world.person.rows if world.person is not None else 0
    append(rig, dataset, "visits", visits(count - 1, rows))
    world.act(rig, dataset)
    return analyst_key(rig, dataset, "attacker")


def registration(dataset: str, count: int) -> dict[str, Any]:
    """The registration, which is the same for both worlds but for the name."""
    bits = {letter: {"type": "integer", "lower": 0, "upper": 1} for letter in LETTERS}
    columns = {
        VALUE: {"type": "integer", "lower": 0, "upper": 2},
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "country": {"type": "category", "size": 50},
        "code": {"type": "category", "size": CODES},
        "limit_rho": {"type": "budget"},
    }
    return {
        "name": dataset,
        "guarantee": {"rho": "1000"},
        "capacity": count + SPARE,
        "tables": {
            "people": {"kind": "individuals", "key": "person_id", "columns": {**columns, **bits}},
            "visits": {
                "kind": "events",
                "key": "person_id",
                "columns": {"item": {"type": "category", "size": 64}},
                "rows_per_individual": ROWS_MAX,
            },
        },
    }


def people(others: int, person: Person | None, *, limit: str | None = None) -> pa.Table:
    """The differing person among `others` people, who are the same in every world but for their limit."""
    source = np.random.default_rng(1)
    columns: dict[str, list[Any]] = {
        "person_id": [f"p{n}" for n in range(others)],
        VALUE: [1] * others,
        "age": source.integers(1, AGE, others).tolist(),
        "country": source.integers(0, 50, others).tolist(),
        "code": codes(others, source).tolist(),
        "limit_rho": [limit] * others,
        **{letter: source.integers(0, 2, others).tolist() for letter in LETTERS},
    }
    if person is not None:
        row = {"person_id": "the-one", VALUE: person.k, "age": person.age, "country": 7, "code": person.code}
        row |= {"limit_rho": person.limit}
        place = others if person.place == "last" else others // 2
        for name, values in columns.items():
            values.insert(place, row.get(name, 1))
    return pa.table({name: pa.array(values, type=_TYPES.get(name, pa.int64())) for name, values in columns.items()})


def codes(others: int, source: np.random.Generator) -> NDArray[np.int64]:
    """Even codes for exactly one in SCAN_WORTH of the rows in memory, scattered, and odd ones for the others."""
    drawn = 2 * source.integers(0, CODES // 2, others) + 1
    even = min(pages_for(others + 1) * PAGE_SLOTS // SCAN_WORTH, others)
    drawn[source.choice(others, even, replace=False)] -= 1
    return drawn


def visits(others: int, rows: int) -> pa.Table:
    """One event of each other person, and `rows` events of the differing one."""
    items = np.random.default_rng(2).integers(0, 64, others + rows)
    keys = [*(f"p{n}" for n in range(others)), *(["the-one"] * rows)]
    return pa.table({"person_id": pa.array(keys), "item": pa.array(items)})


def append(rig: Rig, dataset: str, table: str, rows: pa.Table) -> None:
    """Upload rows."""
    path, headers = f"/v1/datasets/{dataset}/tables/{table}/rows", {"Content-Type": PEOPLE_TYPE}
    rig.curator.post(path, content=arrow_bytes(rows), headers=headers).raise_for_status()


def analyst_key(rig: Rig, dataset: str, name: str) -> str:
    """An API key of an analyst bound to one dataset."""
    wish = {"role": "analyst", "name": name, "dataset": dataset}
    return str(rig.curator.post("/v1/principals", json=wish).raise_for_status().json()["key"])


def auditor_key(rig: Rig, dataset: str) -> str:
    """An API key of an auditor bound to one dataset."""
    wish = {"role": "auditor", "name": "auditor", "dataset": dataset}
    return str(rig.curator.post("/v1/principals", json=wish).raise_for_status().json()["key"])


def individual_key(rig: Rig, dataset: str, individual: str) -> str:
    """The key of an individual."""
    wish = {"role": "individual", "name": individual, "dataset": dataset, "individual": individual}
    return str(rig.curator.post("/v1/principals", json=wish).raise_for_status().json()["key"])


_TYPES = {"person_id": pa.string(), "limit_rho": pa.string()}
