"""Worlds that differ in one person, and what everybody else receives in each: the table behind the tests of leaks.

A world is a dataset whose one person is what a row of `KINDS` says, before or in the middle of a session in which an
analyst, an auditor and another individual call every route that they reach, over HTTP, with the same entropy and the
same clock. Two worlds of one person differ in nothing else, so whatever differs in what is received was told.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from io import BytesIO
from math import ceil
from typing import Any

import httpx
import numpy as np
import orjson
from numpy.typing import NDArray

from service.accounting.laplace_prices import laplace_prices_of
from service.api.app import HttpOptions
from service.core.laplace import laplace_worst_case_units
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.query.estimated_items import ReleasedNumbers, items_of, stated_estimates
from service.workflows.replica import Replica, ReplicaOptions
from tests.api.world import created_app
from tests.factories import PEOPLE, VISITS, SeededEntropy, open_replica, register, upload
from tests.memory.store import MemoryStore

N = 40
ROWS_MAX = 4096
RHO = "0.09"
AMID = 3
"""The calls before what happens amid the session: two queries and a preview."""
JSON = {"Content-Type": "application/json"}
HASHES = ("hash", "previous_hash", "private_digest", "values_sha256")
RANDOM = ("analyst_id",)  # a principal of each world has an id of its own
_VALUES = re.compile(
    rb'"values":\[[^]]*\](?=,"labels":|}$)'
)  # of an answer, or of all ticks; a query may have values too

Row = list[Any]
ReplicaExchange = tuple[int, list[tuple[str, str]], bytes]

CLIPPED: dict[str, Any] = {"per_individual": {"l2_clip": ROWS_MAX}}
"""The natural bound, said: none is longer."""
ACTIVE: list[dict[str, Any]] = [
    {"select": [{"active": {"share": 0.02}}], "noise": {"sigma": 20.0}},
    {
        "select": [{"active": {"share": 0.02}}],
        "where": {"not": {"eq": [{"col": "country"}, "SE"]}},
        "group_by": ["country"],
        "noise": {"share": 0.01},
    },
]
TICK: dict[str, Any] = {"select": [{"exhausted": {}}], "rule": "skip"}
MONITOR: dict[str, Any] = {"rho": "1e-6", "ticks": 6, "share": 0.02}
"""A monitor with so small a reserve that it decides about nobody; one tick more is asked for than there are."""
IMAGE: dict[str, Any] = {"type": "vector", "length": 3, "lower": 0, "upper": 255, "step_log2": 0}
TABLES: dict[str, Any] = {
    "people": PEOPLE | {"columns": PEOPLE["columns"] | {"image": IMAGE}},  # type: ignore[operator]
    "visits": VISITS,
}
_FEATURES: list[dict[str, Any]] = [{"of": {"mul": [{"col": "age"}, 0.01]}, "fill": 0.5}, {"one_hot": "country"}]
LEARNING: list[dict[str, Any]] = [
    {"select": [{"moments": {"features": _FEATURES}}], "noise": {"sigma": 9.0}},
    {
        "select": [
            {
                "gradient": {
                    "loss": "squared",
                    "target": {"mul": [{"col": "spend"}, 0.01]},
                    "features": _FEATURES,
                    "intercept": True,
                    "parameters": [0.25, -1, 0.5, 1, 2],
                    "residual_clip": 3,
                }
            }
        ],
        "per_individual": {"l2_clip": 2.0},
        "noise": {"sigma": 9.0},
        "rule": "clip",
    },
]
VECTORS: list[dict[str, Any]] = [
    {
        "select": [
            {
                "gradient": {
                    "loss": "softmax",
                    "target": {"col": "country"},
                    "features": [{"vector": "image"}],
                    "parameters": [[0.01, -0.02, 0.003], [-0.01, 0.004, 0.02]],
                }
            }
        ],
        "per_individual": {"l2_clip": 90},
        "noise": {"sigma": 900.0},
    },
    {
        "where": {
            "gt": [{"predict": {"features": [{"vector": "image"}], "link": "logistic", "parameters": [1, -2, 1]}}, 0.5]
        },
        "noise": {"sigma": 40.0},
    },
]
REDUCED: list[dict[str, Any]] = [
    {"select": [{"histogram": {"column": "item"}}], "from": "visits", "noise": {"sigma": 60.0}, "reduce": "max"}
    | CLIPPED,
    {"select": [{"sum": {"column": "spend"}}], "group_by": ["country"], "noise": {"sigma": 4e3}, "reduce": "norm"},
    {"select": [{"count": {}}], "group_by": ["country"], "noise": {"sigma": 9.0}, "reduce": "max"},
]
SESSION: list[dict[str, Any]] = [
    {"noise": {"sigma": 3.0}},
    {"where": {"ge": [{"col": "age"}, 40]}, "noise": {"sigma": 5.0}},
    {
        "select": [{"count": {}}, {"sum": {"column": "spend"}}],
        "group_by": ["country"],
        "noise": {"sigma": [9.0, 900.0]},
    },
    ACTIVE[0],
    TICK,
    {"select": [{"histogram": {"column": "item"}}], "from": "visits", "noise": {"sigma": 9.0}, **CLIPPED},
    {
        "select": [{"count": {}}],
        "from": "visits",
        "where": {"in": [{"col": "item"}, [0, 1, 2, 3, 4]]},
        "noise": {"sigma": 9.0},
        **CLIPPED,
    },
    {"select": [{"sum": {"column": "age"}}], "per_individual": {"l2_clip": 50.0}, "noise": {"sigma": 300.0}},
    {"mechanism": "laplace", "noise": {"scale": 9.0}},
    {"noise": {"rho": 0.02}},
    {"noise": {"share": 0.1}},
    {"select": [{"count_individuals": {}}], "from": "visits", "per_individual": {"rows": 2}, "noise": {"sigma": 1e3}},
    {
        "select": [
            {"linear": {"column": "item", "weights": [{"indices": [n, 7], "values": [1, -0.5]} for n in (1, 2)]}},
            {"linear": {"column": "people.country", "weights": {"indices": ["NO"], "values": [3]}}},
        ],
        "from": "visits",
        "noise": {"share": 0.001},
        **CLIPPED,
    },
    {
        "select": [
            {
                "linear": {
                    "column": "item",
                    "matrix": {"starts": [0, 2, 2, 5], "indices": [1, 7, 7, 2, 3], "values": [1, -0.5, 2, 1, 0.25]},
                }
            }
        ],
        "from": "visits",
        "group_by": ["people.country"],
        "noise": {"share": 0.001},
        **CLIPPED,
    },
    {
        "select": [{"histogram": {"column": "country", "values": ["SE"]}}, {"count": {}}],
        "where": {"lt": [{"col": "age"}, 70]},
        "noise": {"sigma": 30.0},
    },
    {
        "select": [{"sum": {"of": {"mul": [{"col": "age"}, {"abs": {"sub": [{"col": "spend"}, 250]}}]}}}],
        "where": {"or": [{"is_null": {"col": "country"}}, {"lt": [{"col": "age"}, {"col": "spend"}]}]},
        "group_by": [{"bin": {"column": "age", "edges": [0, 40, 120]}}],
        "noise": {"share": 0.01},
    },
    {
        "select": [{"count": {}}],
        "from": "visits",
        "where": {"between": [{"col": "people.age"}, 18, 65]},
        "group_by": ["people.country", {"bin": {"column": "people.spend", "width": 250}}],
        "noise": {"sigma": 1e6},
        **CLIPPED,
    },
    {"select": [{"count": {}}], "from": "visits", "noise": {"sigma": 1e6}, **CLIPPED},
    ACTIVE[1],
    TICK,
    {
        "select": [
            {"mean": {"column": "age"}},
            {"difference": {"of": {"stddev": {"column": "age"}}, "by": "country", "from": "NO", "to": "SE"}},
            {"quantile": {"column": "spend", "probability": 0.9, "bins": 4}},
        ],
        "group_by": ["country"],
        "noise": {"share": 0.01},
    },
    *LEARNING,
    *VECTORS,
    *REDUCED,
    {"select": [{"active": {"share": 0.001}}], "noise": {"sigma": 3.0}},
    {"noise": {"sigma": 2.0}, "rule": "clip"},
    {
        "select": [{"histogram": {"column": "item"}}],
        "from": "visits",
        "noise": {"sigma": 9.0},
        "rule": "clip",
        **CLIPPED,
    },
    {
        "select": [{"sum": {"column": "age"}}],
        "group_by": ["country"],
        "per_individual": {"l2_clip": 50.0},
        "mechanism": "laplace",
        "noise": {"share": 0.05},
    },
    {"select": [{"count": {}}], "from": "visits", "mechanism": "laplace", "noise": {"scale": 40.0}, **CLIPPED},
    {"noise": {"half_width": 12.0, "confidence": 0.9}},
    {"where": {"not": {"eq": [{"col": "country"}, "SE"]}}, "noise": {"sigma": 3.0}},
    {"noise": {"sigma": 3.0}},
    {"where": {"in": [{"col": "country"}, ["NO"]]}, "noise": {"sigma": 2.0}},
    {"where": {"fold": {"seed": "a", "of": 3, "in": [1, 2]}}, "noise": {"sigma": 5.0}},
    TICK,
    {"noise": {"sigma": -1}},
    {"where": {"eq": [{"col": "nothing"}, 1]}, "noise": {"sigma": 3.0}},
    {"select": [{"count": {}}], "from": "visits", "noise": {"sigma": 0.5}},
    {"where": {"ge": [{"col": "age"}, 200]}, "noise": {"sigma": 1.0}},
    {"select": [{"sum": {"column": "spend"}}], "from": "visits", "noise": {"sigma": 1.0}},
]
PURE: dict[str, Any] = {"guarantee": {"epsilon": RHO}, "accounting": {"kind": "pure"}}
"""A registration of as much pure epsilon as the others have of rho, so that limits mean the same."""
_PURE_SESSION: list[dict[str, Any]] = [
    {"noise": {"scale": 18.0}},
    {"where": {"ge": [{"col": "age"}, 40]}, "noise": {"scale": 50.0}},
    {"select": [{"active": {"share": 0.02}}], "noise": {"scale": 200.0}},
    {"group_by": ["country"], "noise": {"scale": 400.0}},
    {"select": [{"sum": {"column": "age"}}], "per_individual": {"l2_clip": 50.0}, "noise": {"scale": 2e4}},
    {"select": [{"sum": {"column": "spend"}}], "group_by": ["country"], "noise": {"share": 0.02}, "reduce": "norm"},
    {"select": [{"histogram": {"column": "item"}}], "from": "visits", "noise": {"share": 0.05}, "reduce": "max"}
    | CLIPPED,
    {"select": [{"count": {}}], "from": "visits", "noise": {"scale": 2e4}, **CLIPPED},
    {"noise": {"half_width": 900.0, "confidence": 0.9}},
    {"noise": {"rho": 0.01}},
    {"where": {"not": {"eq": [{"col": "country"}, "SE"]}}, "noise": {"scale": 40.0}},
    {"where": {"in": [{"col": "country"}, ["NO"]]}, "noise": {"scale": 400.0}},
    {"noise": {"scale": 18.0}, "reuse": False},
    {"noise": {"scale": 18.0}, "rule": "clip"},
    {"noise": {"scale": -1}},
    {"mechanism": "gaussian", "noise": {"sigma": 9.0}},
    TICK,
]
PURE_SESSION = [{"mechanism": "laplace", **query} if query is not TICK else TICK for query in _PURE_SESSION]
"""Laplace noise alone: no other noise has a price there."""


# The neighbours


Act = Callable[[Replica, str], object]
"""An act on the person of a key."""


def nothing(_replica: Replica, _key: str) -> None:
    """Everything stays as it is."""


def pause(replica: Replica, key: str) -> None:
    """The person pauses."""
    replica.individuals.lower_limit(_own(replica, key), "survey", pause=True)


def resume(replica: Replica, key: str) -> None:
    """The person ends a pause."""
    replica.individuals.resume(_own(replica, key), "survey")


def lower_to(rho: str) -> Act:
    """The person lowers the limit."""
    return lambda replica, key: replica.individuals.lower_limit(_own(replica, key), "survey", limit_rho=Decimal(rho))


def lower_to_the_least(replica: Replica, key: str) -> None:
    """The person leaves nothing of the limit."""
    own = _own(replica, key)
    least = replica.individuals.budgets(own)[0].lowest_limit_rho
    replica.individuals.lower_limit(own, "survey", limit_rho=Decimal(least))


def erase(replica: Replica, key: str) -> None:
    """The curator erases the person."""
    replica.curators.erase_individual("survey", key)


def join(replica: Replica, key: str) -> None:
    """The person comes, with all rows."""
    row = next(row for row in people() if row[0] == key)
    upload_people(replica, [row])
    upload(replica, "visits", [visit for visit in visits() if visit[0] == key])


def _own(replica: Replica, key: str) -> Any:
    return replica.principals.create(role="individual", name="itself", dataset="survey", individual=key)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The course of the one person: the record and the events at the upload, and acts before and amid the session."""

    row: Callable[[Row], Row | None] = lambda row: row
    visits: int | None = None  # None: those that the person has
    before: Act = nothing
    amid: Act = nothing


KINDS: Mapping[str, Kind] = {
    "present": Kind(),
    "absent": Kind(row=lambda _: None),
    "other value": Kind(row=lambda row: [row[0], "SE" if row[1] == "NO" else "NO", 119, 499.99, [255, 0, 17]]),
    "zero": Kind(row=lambda row: [row[0], row[1], 0, 0, [0, 0, 0]]),
    "blank": Kind(row=lambda row: [row[0], None, None, None, None]),
    "no rows": Kind(visits=0),
    "most rows": Kind(visits=ROWS_MAX),
    "left out": Kind(before=lower_to_the_least),
    "exhausted": Kind(before=lower_to("0.0556")),  # a little more than the first query costs
    "paused": Kind(amid=pause),
    "resumed": Kind(before=pause, amid=resume),
    "limit lowered": Kind(amid=lower_to("0.08")),
    "erased": Kind(before=erase),
    "erased amid": Kind(amid=erase),
    "joined": Kind(row=lambda _: None, amid=join),
}
PLACED = [
    (kind, is_last)
    for kind in KINDS
    for is_last in (True, False)
    if kind != "absent" and (is_last or kind != "joined")  # a person that joins later has the highest slot
]
"""Each kind with the one person in the highest slot, and with the person amid the others."""
RECORD = "/v1/datasets/survey/record?individual=p3"
"""A read of curators, which is refused to all others."""
QUIET = tuple(name for name, kind in KINDS.items() if kind.before is nothing and kind.amid is nothing)
"""Worlds without acts: there even the operator's metrics are equal."""


# A world


@dataclass
class World:
    """One dataset, all that was said about it, and what is in it at the end."""

    exchanges: list[ReplicaExchange]
    entries: list[LedgerEntry]
    accounts: dict[str, int]


def people() -> list[Row]:
    """Forty people, some with gaps."""
    source, images = np.random.default_rng(2), np.random.default_rng(4)
    return [
        [
            f"p{n}",
            [None, "NO", "SE", "XX"][int(source.integers(0, 4))],
            None if n % 7 == 0 else int(source.integers(0, 121)),
            round(float(source.uniform(0, 500)), 2),
            None if n % 5 == 0 else images.integers(0, 256, 3).tolist(),
        ]
        for n in range(N)
    ]


def upload_people(replica: Replica, rows: Sequence[Row]) -> None:
    """People as lines of JSON."""
    names = ("person_id", "country", "age", "spend", "image")
    lines = b"\n".join(orjson.dumps(dict(zip(names, row, strict=True))) for row in rows)
    # Some countries are not declared, so that they are NULL.
    replica.curators.append_rows("survey", "people", "application/x-ndjson", BytesIO(lines), accept=names[1:])


def visits() -> list[Row]:
    """About three visits of each."""
    source = np.random.default_rng(3)
    return [[f"p{n}", int(source.integers(0, 60))] for n in source.integers(0, N, size=120)]


def lived(
    one: str,
    kind: str,
    telemetry: Telemetry = NULL_TELEMETRY,
    *,
    is_last: bool = True,
    rule: str = "skip",
    is_pure: bool = False,
) -> World:
    """Register, upload, let the whole session happen, and look at everything.

    A slot is a matter of order of arrival: the one person comes last, and so has the highest, or in the middle. Who
    comes later has another slot where the person is absent, and nothing else.
    """
    store = MemoryStore()
    with open_replica(store, SeededEntropy(9), options=ReplicaOptions(telemetry=telemetry)) as replica:
        furnish(replica, one, KINDS[kind], is_last=is_last, rule=rule, is_pure=is_pure)
        asked = PURE_SESSION if is_pure else SESSION
        exchanges = asyncio.run(session(replica, telemetry, amid=lambda: KINDS[kind].amid(replica, one), asked=asked))
        with store.transaction(1, lock=False) as transaction:
            entries = list(transaction.entries(after=0))
        accounts = {
            row.key: row.spent_units for row in replica.curators.budgets("survey", cursor=None, limit=1000).items
        }
    return World(exchanges, entries, accounts)


def parts_in(entry: LedgerEntry) -> tuple[dict[int, int], set[int]]:
    """Charges by slot, and the slots left out."""
    charged, charges, left_out = (array.tolist() for array in entry.decode())
    return dict(zip(charged, charges, strict=True)), set(left_out)


def price_of(entry: LedgerEntry, vector: NDArray[np.int64]) -> int:
    """The charge of a vector in grid steps in the query of an entry, in units."""
    norm_squared = sum(int(step) ** 2 for step in vector)
    word, _, accounting = entry.mechanism.partition(" ")
    if word == "laplace":
        return laplace_worst_case_units(norm_squared, entry.law.size_steps, laplace_prices_of(accounting))
    sigma_steps = Fraction(entry.sigma) / Fraction(entry.grid)
    return ceil(Fraction(norm_squared) / (2 * sigma_steps**2) * 2**40)


def slot_of_one(*, is_last: bool) -> int:
    """The slot of the one person: the highest, or one in the middle."""
    return N - 1 if is_last else (N - 1) // 2


def furnish(
    replica: Replica, one: str, kind: Kind, *, is_last: bool = True, rule: str = "skip", is_pure: bool = False
) -> None:
    """The dataset with the one person as the kind says; where it is pure it has no monitor."""
    stated = PURE if is_pure else {"monitor": MONITOR}
    register(replica, rho=RHO, rule=rule, tables=TABLES, **stated)
    present = [row for row in people() if row[0] != one]
    own = kind.row(next(row for row in people() if row[0] == one))
    if own is not None:
        present.insert(slot_of_one(is_last=is_last), own)
    upload_people(replica, present)
    keys = {row[0] for row in present}
    upload(replica, "visits", [visit for visit in visits_of(one, kind.visits) if visit[0] in keys])
    kind.before(replica, one)


def visits_of(one: str, count: int | None) -> list[Row]:
    """Every individual's visits, with so many of the one person."""
    if count is None:
        return visits()
    own = [[one, n % 50] for n in range(count)]
    return [*(visit for visit in visits() if visit[0] != one), *own]


# What is said


def analyst_calls(
    rule: str = "skip", session: Sequence[Mapping[str, Any]] = SESSION
) -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """Every query with its preview, a retry, a misused key, a batch, the listings, and routes of others.

    A query that names no rule has this one.
    """
    bodies = [orjson.dumps({"version": 1, "select": [{"count": {}}], "rule": rule} | dict(query)) for query in session]
    for n, body in enumerate(bodies):
        yield "POST", "/v1/datasets/survey/queries", body, {"Idempotency-Key": f"key-{n}"}
        yield "POST", "/v1/datasets/survey/queries/preview", body, {}
    yield "POST", "/v1/datasets/survey/queries", bodies[0], {"Idempotency-Key": "key-0"}
    yield "POST", "/v1/datasets/survey/queries", bodies[1], {"Idempotency-Key": "key-0"}
    # Those that are not answered by an earlier answer come by themselves: refusals are looked up beside their commit.
    # So do ticks. None of either is refused there.
    anew = [body for body, query in zip(bodies, session, strict=True) if _is_anew(query)]
    ticks = [body for body, query in zip(bodies, session, strict=True) if query is TICK]
    others = [body for body in bodies if body not in anew + ticks]
    for name, asked in (("batch", others), ("anew", anew), ("ticks", ticks)):
        entries = [{"idempotency_key": f"{name}-{n}", "query": orjson.Fragment(body)} for n, body in enumerate(asked)]
        yield "POST", "/v1/datasets/survey/queries/batch", orjson.dumps({"queries": entries}), {}
    yield "POST", "/v1/datasets/survey/queries", ticks[0], {"Idempotency-Key": "beyond the last"}
    for path in ("", "/survey", "/survey/budgets", "/survey/acts", "/survey/ledger", "/survey/budgets/summary"):
        yield "GET", f"/v1/datasets{path}", b"", {}
    yield "GET", "/v1/datasets/survey/monitor", b"", {}
    for path in ("/v1/queries", "/v1/queries?limit=3", "/v1/allowances", "/v1/me/budgets", "/livez", "/readyz", "/no"):
        yield "GET", path, b"", {}
    for path in ("/sign-in", "/analyst", "/analyst/history", "/analyst/allowance", "/assets/style.css", "/v1/session"):
        yield "GET", path, b"", {}
    yield "DELETE", "/v1/datasets/survey/individual?individual=p3", b"", {}
    yield "GET", RECORD, b"", {}
    yield from _hashed_calls()


def _is_anew(query: Mapping[str, Any]) -> bool:
    return any(
        item.get("active", {}).get("share", 0) >= ACTIVE[0]["select"][0]["active"]["share"]
        for item in query.get("select", [])
    )


def _hashed_calls() -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """A step whose parameters come as an array, the same by their hash, and one by a hash that nobody has sent."""
    theta = np.array([0.25, -1, 0.5, 1, 2])
    npz, where = {"Content-Type": "application/x-npz"}, "/v1/datasets/survey/queries"
    body = BytesIO()
    np.savez(body, query=orjson.dumps(_step("@theta")).decode(), theta=theta)
    by_hash = orjson.dumps(_step({"sha256": hashlib.sha256(theta.tobytes()).hexdigest()}))
    yield "POST", where, by_hash, {"Idempotency-Key": "hashed"}
    yield "POST", where, body.getvalue(), {"Idempotency-Key": "hashed", **npz}
    for key in ("hashed", "reused"):
        yield "POST", where, by_hash, {"Idempotency-Key": key}
    yield "POST", f"{where}/preview", by_hash, {}
    yield "POST", where, orjson.dumps(_step({"sha256": "ab" * 32})), {"Idempotency-Key": "unknown"}


def _step(parameters: object) -> dict[str, Any]:
    gradient = LEARNING[1]["select"][0]["gradient"] | {"parameters": parameters}
    return {"version": 1, **LEARNING[1], "select": [{"gradient": gradient}]}


def auditor_calls() -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """The ledger, whole and in pages, and routes of others."""
    for path in ("", "?limit=5", "/p3"):
        yield "GET", f"/v1/datasets/survey/ledger{path}", b"", {}
    for path in ("/survey", "/survey/budgets", "/survey/acts", "/survey/budgets/summary"):
        yield "GET", f"/v1/datasets{path}", b"", {}
    yield "GET", RECORD, b"", {}


def individual_calls() -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """Another's own account and receipts, a lower limit, and routes of others."""
    for path in ("budgets", "receipts", "receipts?limit=4"):
        yield "GET", f"/v1/me/{path}", b"", {}
    yield "POST", "/v1/me/budgets/survey/lower", b'{"limit_rho":"0.08"}', {}
    yield "POST", "/v1/me/budgets/survey/lower", b'{"pause":true}', {}
    yield "POST", "/v1/me/budgets/survey/resume", b"", {}
    for path in ("/v1/me/budgets", "/v1/me/record/survey", "/v1/me/erasure/survey", "/individual", "/v1/session"):
        yield "GET", path, b"", {}
    yield "GET", RECORD, b"", {}
    for path in ("", "/survey/ledger", "/survey/budgets"):
        yield "GET", f"/v1/datasets{path}", b"", {}


async def session(
    replica: Replica,
    telemetry: Telemetry,
    *,
    amid: Callable[[], object] = lambda: None,
    each: Callable[[], object] = lambda: None,
    roles: Collection[str] = ("analyst", "auditor", "individual"),
    rule: str = "skip",
    asked: Sequence[Mapping[str, Any]] = SESSION,
) -> list[ReplicaExchange]:
    """All the calls of an analyst, an auditor and another individual, over HTTP; `amid` happens after a few.

    `each` is called before and after every exchange. Only these roles call; queries are those `asked`, with this rule.
    """
    keys = {
        "analyst": replica.principals.create(role="analyst", name="ana", dataset="survey")[1],
        "auditor": replica.principals.create(role="auditor", name="aud", dataset="survey")[1],
        "individual": replica.principals.create(role="individual", name="pia", dataset="survey", individual="p1")[1],
    }
    calls = [("analyst", call) for call in analyst_calls(rule, asked)]
    half = len(asked)
    said = [
        *calls[:half],
        *(("individual", call) for call in individual_calls()),
        *calls[half:],
        *(("auditor", call) for call in auditor_calls()),
        *(("individual", call) for call in individual_calls()),
    ]
    said = [(role, call) for role, call in said if role in roles]
    app = created_app(replica, HttpOptions(telemetry=telemetry))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    exchanges: list[ReplicaExchange] = []
    async with httpx.AsyncClient(transport=transport, base_url="http://sparing", headers=JSON) as client:
        for n, (role, (method, path, body, headers)) in enumerate(said):
            if n == AMID:
                amid()
            named = {"Authorization": f"Bearer {keys[role]}", "X-Request-Id": f"r{n}", **headers}
            each()
            response = await client.request(method, path, content=body, headers=named)
            each()
            exchanges.append((response.status_code, sorted(response.headers.items()), response.content))
    return exchanges


# What may differ


def public_part(exchange: ReplicaExchange) -> ReplicaExchange:
    """An exchange without released numbers, which are the mechanism's output, and without the ledger's digests.

    Those of an auditor's page are of released values, or salted.
    """
    status, headers, body = exchange
    if status == 200 and _VALUES.search(body):
        kept = [(name, value) for name, value in headers if name != "content-length"]
        return status, kept, _VALUES.sub(b"", _without_estimates(body))
    if status == 200 and b'"previous_hash"' in body:
        page = orjson.loads(body)
        rows = [{name: value for name, value in row.items() if name not in HASHES + RANDOM} for row in page["items"]]
        return status, headers, orjson.dumps({**page, "items": rows})
    return exchange


def _without_estimates(body: bytes) -> bytes:
    """A reply without estimates, which must be those of their answer's numbers and of what else it states."""
    if b'"estimates"' not in body:
        return body
    reply = orjson.loads(body)
    for answer in reply.get("answers", [reply]):
        if "estimates" in answer:
            stated, axes = answer.pop("estimates"), answer["axes"]
            released = ReleasedNumbers(answer["values"], answer["labels"], axes, answer["sigma"], answer["grid"])
            assert stated == stated_estimates(items_of(stated["items"], axes), released)
            answer["estimated"] = stated["items"]
    return orjson.dumps(reply)


def public_parts(exchanges: Sequence[ReplicaExchange]) -> list[ReplicaExchange]:
    """The public part of each exchange."""
    return [public_part(exchange) for exchange in exchanges]


def released(exchange: ReplicaExchange) -> list[float] | None:
    """The values of an answer."""
    status, _, body = exchange
    document = orjson.loads(body) if status == 200 and body.startswith(b"{") else {}
    values: list[float] | None = document.get("values")
    return values
