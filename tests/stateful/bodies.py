"""Bodies of requests: valid ones, and damaged ones that get far."""

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.api.world import COUNT, TABLES
from tests.engine.ingest.uploads import arrow
from tests.query.damaged_bytes import DAMAGES, TOKEN

KEYS: Final = ("ada", "bo", "cy", "di", "ed", "fa", "gu")
ODD_TEXTS: Final = ("", " ", "\0", "é", "<b>", "a/b", "..", "x" * 300, "null", "1", "\ud7ff", "%", "\u202e")
ODD_VALUES: Final[tuple[Any, ...]] = (None, True, -1, 0, 1e308, 10**30, 0.1, "NaN", [], {}, [[]], "1e999", *ODD_TEXTS)


IMAGE: dict[str, Any] = {"type": "vector", "length": 3, "lower": 0, "upper": 255, "step_log2": 0}
FEATURES: list[dict[str, Any]] = [{"of": {"mul": [{"col": "age"}, 0.01]}, "fill": 0}, {"one_hot": "country"}]


def query(random: Random) -> dict[str, Any]:
    """A query that most datasets of the walk take."""
    where = random.choice(
        [
            None,
            {"eq": [{"col": "country"}, random.choice(["NO", "SE", "DK"])]},
            {"between": [{"col": "age"}, random.randrange(60), 60 + random.randrange(60)]},
        ]
    )
    items: list[dict[str, Any]] = [
        {"count": {}},
        {"sum": {"column": "age"}},
        {"histogram": {"column": "country"}},
        {"active": {"share": random.choice([0.01, 0.5])}},
        {"moments": {"features": FEATURES, "intercept": True}},
        {
            "gradient": {
                "loss": "softmax",
                "target": "country",
                "features": FEATURES,
                "parameters": [[random.uniform(-2, 2) for _ in range(size)] for size in (4, 4, random.choice([4, 5]))],
            }
        },
        {
            "gradient": {
                "loss": "softmax",
                "target": "country",
                "features": [{"vector": "image"}],  # where an extension has added it
                "parameters": [[random.uniform(-2, 2) for _ in range(3)] for _ in range(3)],
            }
        },
    ]
    select = [random.choice(items)]
    groups = random.choice([[], [], ["country"]])
    noise = random.choice([{"sigma": random.choice([1, 20, 400.5])}, {"rho": 0.001}, {"share": 0.01}])
    asked = {"version": 1, "select": select, "group_by": groups, "noise": noise}
    if random.random() < 0.1:
        asked |= {"from": "visits", "select": [{"count": {}}], "group_by": []}
    elif where is not None:
        asked["where"] = where
    asked |= {"rule": "clip"} if random.random() < 0.2 else {}
    if random.random() < 0.2:
        asked |= {"mechanism": "laplace", "noise": random.choice([{"scale": 30.0}, noise])}
    return asked | ({"reuse": True} if random.random() < 0.1 else {})


def batch(random: Random) -> dict[str, Any]:
    """A few queries."""
    asked = [
        {"idempotency_key": f"b{random.randrange(30)}", "query": query(random)} for _ in range(random.randint(1, 4))
    ]
    return {"queries": asked}


def registration(random: Random) -> dict[str, Any]:
    """A dataset that may exist by now."""
    guarantee = random.choice([{"rho": "1"}, {"epsilon": "1", "delta": "0.000001"}, {"rho": "0.002"}])
    accounting = random.choice(["gdp", "gdp", {"kind": "zcdp"}, {"kind": "rdp", "order": 16}, {"kind": "pure"}])
    guarantee = {"epsilon": "1"} if accounting == {"kind": "pure"} else guarantee
    name = f"d{random.randrange(12)}"
    facts = {"capacity": random.choice([3, 10, 1000]), "rule": random.choice(["skip", "drop"])}
    facts |= {} if accounting == "gdp" else {"accounting": accounting}
    return {"name": name, "guarantee": guarantee, **facts, "tables": TABLES}


def extension(random: Random) -> dict[str, Any]:
    """A public change of a dataset."""
    column = random.choice([{f"c{random.randrange(5)}": {"type": "boolean"}}, {"image": IMAGE}])
    return random.choice([{"capacity": 1000 + random.randrange(2000)}, {"tables": {"people": {"columns": column}}}])


def correction(random: Random) -> dict[str, Any]:
    """Another value of an individual, or another vector."""
    image = [random.randrange(256) for _ in range(random.choice([3, 3, 2]))]
    ages: list[dict[str, Any]] = [{"age": random.randrange(150)}] * 3
    return random.choice([*ages, {"image": random.choice([image, None])}])


def principal(random: Random, datasets: list[str]) -> dict[str, Any]:
    """A principal of any role, mostly of one that is."""
    role = random.choice(["curator", "analyst", "analyst", "auditor", "individual"])
    made: dict[str, Any] = {"role": role, "name": random.choice(["Ann", "Bob", "<i>Cy</i>"])}
    if role == "individual" or random.random() < 0.6:
        made["dataset"] = random.choice(datasets)
    if role == "individual":
        made["individual"] = random.choice(KEYS)
    if role == "analyst" and random.random() < 0.4:
        made["allowance_rho"] = random.choice(["0.001", "0.5", "0"])
    return made


def rows(random: Random) -> bytes:
    """CSV of either table; now and then with what no table takes."""
    if random.random() < 0.3:
        lines = [f"{random.choice(KEYS)},{random.randrange(400)}" for _ in range(random.randint(0, 6))]
        return "\n".join(["person_id,day", *lines, ""]).encode()
    keys = random.sample([*KEYS, *(f"p{n}" for n in range(200))], random.randint(0, 5))
    lines = [f"{key},{random.choice(['NO', 'SE', '', 'XX'])},{random.randrange(150)}" for key in keys]
    return "\n".join(["person_id,country,age", *lines, ""]).encode()


def file(random: Random) -> bytes:
    """An Arrow stream of a few columns, of which one may be left out."""
    columns = {"id": random.sample(KEYS, 3), "age": [random.randrange(150), None, 0.5], "list": [[1], [], None]}
    return arrow(dict(random.sample(sorted(columns.items()), random.randint(1, 3))))


def damaged(random: Random, body: bytes) -> bytes:
    """The body with one kind of damage: of tokens, of one value, or of bytes."""
    kind = random.random()
    if kind < 0.5:
        tokens = TOKEN.findall(body.decode(errors="replace"))
        if len(tokens) > 1:
            at = random.randrange(len(tokens) - 1)
            damage = random.choice(DAMAGES)
            return "".join(damage(tokens, at, random.randint(at + 1, len(tokens)), tokens)).encode()
    if kind < 0.8:
        return json.dumps(random.choice(ODD_VALUES)).encode() if random.random() < 0.2 else with_odd_value(random, body)
    at = random.randrange(len(body) + 1)
    return body[:at] + random.randbytes(random.randint(0, 3)) + body[at + random.randint(0, 2) :]


def with_odd_value(random: Random, body: bytes) -> bytes:
    """One member of a JSON object is another value, or one more is there."""
    try:
        document = json.loads(body)
    except ValueError:
        return body[:-1]
    if not isinstance(document, dict) or not document:
        return b"[]"
    name = random.choice([*document, "confirm", "__class__"])
    return json.dumps(document | {name: random.choice(ODD_VALUES)}).encode()


def nothing(_random: Random, _datasets: list[str]) -> bytes:
    """No body."""
    return b""


def _one_query(random: Random, _datasets: list[str]) -> Any:
    return COUNT if random.random() < 0.2 else query(random)


MAKERS: Final[dict[str, Callable[[Random, list[str]], Any]]] = {
    "POST /v1/datasets": lambda random, _: registration(random),
    "POST /v1/files/preview": lambda random, _: file(random),
    "PATCH /v1/datasets/{dataset}": lambda random, _: extension(random),
    "POST /v1/datasets/{dataset}/tables/{table}/rows": lambda random, _: rows(random),
    "PATCH /v1/datasets/{dataset}/individual": lambda random, _: correction(random),
    "PUT /v1/datasets/{dataset}/alarm": lambda random, _: {"share": random.choice([0.1, 0.99, None])},
    "POST /v1/principals": principal,
    "PATCH /v1/principals/{principal}": lambda random, _: {"name": random.choice(["Ann", "Bo"])},
    "POST /v1/datasets/{dataset}/individuals/keys": lambda random, _: random.sample(KEYS, 2),
    "POST /v1/datasets/{dataset}/queries": _one_query,
    "POST /v1/datasets/{dataset}/queries/preview": _one_query,
    "POST /v1/datasets/{dataset}/queries/batch": lambda random, _: batch(random),
    "POST /v1/datasets/{dataset}/forecast": _one_query,
    "POST /v1/me/budgets/{dataset}/lower": lambda random, _: {"limit_rho": random.choice(["0.9", "0.01", "0", "2"])},
    "POST /v1/datasets/{dataset}/archive": lambda random, _: {"rows": random.choice(["keep", "delete"])},
}
"""A valid body for each operation that takes one: a document or bytes."""
