"""Bytes made of valid queries by every kind of damage: a QueryProblem, or the very query that they say.

Any bytes at all are the subject of test_parse.py; most are refused at once. These get far: tokens of valid queries are
deleted, repeated, swapped, spliced from others, nested, given twice and replaced by odd ones, and bytes by any.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from pydantic import ValidationError

from service.accounting.accountings import GAUSSIAN
from service.query.canonical import canonical_bytes
from service.query.json_text import DEPTH_MAX
from service.query.language import Query
from service.query.parse import BODY_BYTES_MAX, parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from tests.query.damaged_bytes import DAMAGES, TOKEN, Damage, damaged, deleted, drawn
from tests.query.samples import BUDGET_UNITS, CAPACITY, SCHEMA, body, depth, query

Parse = Callable[[bytes], Query]


def outcome_of(raw: bytes, parse: Parse = parse_query) -> str:
    """Tell whether some bytes are refused, or read as what they say and then refused for the schema, or planned."""
    try:
        query = parse(raw)
    except QueryProblem as problem:
        check_told(problem)
        return "refused"
    canonical = canonical_bytes(query)
    assert meaning(strictly(canonical)) == meaning(strictly(raw))
    assert canonical_bytes(parse(canonical)) == canonical
    plan = planned(query)
    if plan is None:
        return "read"
    again = planned(parse(plan.canonical))
    assert again is not None
    assert (again.canonical, again.query_hash, again.dimension) == (plan.canonical, plan.query_hash, plan.dimension)
    is_of_canonical = hashlib.sha256(plan.canonical).hexdigest() == plan.query_hash
    assert is_of_canonical or plan.layout.estimated  # what is worked out has the hash of its linear query
    return "planned"


def check_told(problem: QueryProblem) -> None:
    """Each error has a field, and can be encoded whatever was sent."""
    assert problem.errors
    assert all(error.field and f"{error.field}{error.message}".isascii() for error in problem.errors)


def planned(query: Query) -> Plan | None:
    """The plan, or None where the query is refused for the schema."""
    try:
        plan = plan_of_query(query)
    except QueryProblem as problem:
        check_told(problem)
        return None
    assert 0.3 <= plan.scale.law.size_steps <= 2**32
    return plan


def plan_of_query(query: Query) -> Plan:
    """The plan of a query that was read."""
    return compile_query(query, SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS, pricing=GAUSSIAN)


def strictly(raw: bytes) -> Any:
    """The document, of JSON about which no two readers disagree."""
    assert len(raw) <= BODY_BYTES_MAX
    document = json.loads(raw.decode(), object_pairs_hook=members, parse_constant=refuse)
    assert depth(document) <= DEPTH_MAX
    json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    return document


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members, each key once."""
    found = dict(pairs)
    assert len(found) == len(pairs)
    return found


def refuse(name: str) -> None:
    """NaN and Infinity are not JSON."""
    raise AssertionError(name)


def meaning(node: Any) -> Any:
    """A document without defaults, in which numbers are doubles and 1 is not true."""
    if isinstance(node, dict):
        kept = {name: meaning(part) for name, part in node.items() if part is not None}
        return {name: part for name, part in kept.items() if (name, part) not in DEFAULTS and name != "reuse"}
    if isinstance(node, list):
        return [meaning(part) for part in node]
    return ("boolean", node) if isinstance(node, bool) else float(node) if isinstance(node, int) else node


DEFAULTS: Final[list[Any]] = [("group_by", []), ("per_individual", {}), ("rule", "skip"), ("noise", {"prepaid": {}})]


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(raw=damaged(tuple(DAMAGES)))
@example(body(query(noise={"sigma": 1e100}, select=[{"sum": {"column": "level"}}])))
@example(body(query(noise={"rho": 5e-324}, select=[{"sum": {"column": "spend"}}])))
@example(body(query(noise={"sigma": 5e-324}, per_individual={"l2_clip": 1e-30})))
@example(b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":1e400}}')
@example(b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":1,"sigma":2}}')
@example(b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":1},"from":"\\ud800"}')
def test_damaged_bytes_are_refused_or_read_as_they_are(raw: bytes) -> None:
    """And what is read is planned or refused, and is the same query in its canonical form."""
    assert outcome_of(raw) in {"refused", "read", "planned"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_kind_of_damage_goes_some_way(damage: Damage) -> None:
    """Some of its bytes are JSON, so that more than the reader of JSON is tried."""
    found = Counter(is_json(raw) for raw in drawn(damaged((damage,)), 2))

    assert found[True] >= (0 if damage is deleted else 5)


def is_json(raw: bytes) -> bool:
    """Tell whether the most lenient reader reads it."""
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


@cache
def examples() -> list[bytes]:
    """Fixed ones of every kind of damage, also to a query with Laplace noise, and whole ones."""
    whole = body(query(where={"eq": [{"col": "member"}, True]}))
    laplace = body(query(mechanism="laplace", noise={"scale": 20}, group_by=["country"]))
    of_laplace = damaged(tuple(DAMAGES), [TOKEN.findall(laplace.decode())])
    of_all = [raw for damage in DAMAGES for raw in drawn(damaged((damage,)), 5)]
    return [whole, laplace, *of_all, *drawn(of_laplace, 5)]


def test_every_outcome_occurs() -> None:
    """Neither is all refused nor all read; queries with Laplace noise are among them, and some of these are planned."""
    found = {raw: outcome_of(raw) for raw in examples()}
    counts, laplace = Counter(found.values()), [raw for raw in found if b'"laplace"' in raw]

    assert min(counts[outcome] for outcome in ("refused", "read", "planned")) > len(examples()) // 50
    assert len(laplace) > 5
    assert "planned" in {found[raw] for raw in laplace}


# Mistakes of a parser are found


def _read(document: Any) -> Query:
    try:
        return Query.model_validate(document)
    except ValidationError as error:
        raise QueryProblem.of("body", str(error)) from None


def the_last_of_two_keys(raw: bytes) -> Query:
    """Take the last of two equal keys, which most readers of JSON do."""
    return _read(json.loads(parsed_text(raw)))


def parsed_text(raw: bytes) -> str:
    """Text that is JSON."""
    try:
        json.loads(raw)
    except ValueError as error:
        raise QueryProblem.of("body", str(error)) from None
    return raw.decode()


def without_unknown_fields(raw: bytes) -> Query:
    """Leave out unknown fields, which a model does that does not forbid them."""
    document = json.loads(parsed_text(raw), object_pairs_hook=dict)
    known = {field.alias or name for name, field in Query.model_fields.items()}
    return _read({name: part for name, part in document.items() if name in known} if isinstance(document, dict) else 0)


def with_errors_of_its_own(raw: bytes) -> Query:
    """A wrong document leaves as another exception."""
    return Query.model_validate_json(raw)


def with_one_for_true(raw: bytes) -> Query:
    """Put 1 for true, which Python takes for equal."""
    return parse_query(raw.replace(b"true", b"1"))


@pytest.mark.parametrize(
    "mistaken", [the_last_of_two_keys, without_unknown_fields, with_errors_of_its_own, with_one_for_true]
)
def test_a_mistaken_parser_is_found(mistaken: Parse) -> None:
    """The law fails for one that reads what was not said, or raises what it does not say."""
    assert any(fails(raw, mistaken) for raw in examples())


def fails(raw: bytes, parse: Parse) -> bool:
    """Tell whether the law fails, if need be with another exception."""
    try:
        outcome_of(raw, parse)
    except (AssertionError, ValueError):
        return True
    return False
