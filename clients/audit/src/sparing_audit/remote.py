"""A real service under audit, through the Python client: curator, analysts and individuals, each with its own key."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, Self, TypeVar

import httpx
import numpy as np

from sparing import Answer, APIStatusError, Client, Dataset, Item, histogram
from sparing._calls import Call
from sparing._errors import misread
from sparing._requests import get
from sparing_audit.accountings import Accounting
from sparing_audit.noise import UNITS_PER_RHO, Laplace
from sparing_audit.service import ANALYSTS, Account, Offered, Query, Receipts, Released, Table, Values
from sparing_audit.victims import ROWS_MAX

COLUMN: Final = "coordinate"
PAGE_SIZE: Final = 1000
TIMEOUT_S: Final = 120.0
AT_ONCE: Final = 8
_COLUMNS: Final = ("key", "spent_units", "budget_units", "queries_charged", "queries_left_out")
_REGISTERS, _ASKS = "/v1/datasets", "/v1/datasets/{dataset}/queries"

_T = TypeVar("_T")


class RemoteService:
    """A service, given by its address and a curator's key. Close it, or use it in a `with` statement."""

    def __init__(self, *, base_url: str, curator_key: str, transport: httpx.BaseTransport | None = None) -> None:
        """Make the curator's client without sending a request. `transport` replaces the network in tests."""
        # One pool of connections for all keys: a client of its own for each individual would open one for each act.
        self._transport = httpx.HTTPTransport() if transport is None else transport
        self._url = base_url
        self._curator = self._client(curator_key)
        self._analysts: dict[str, list[tuple[str, Client]]] = {}  # by dataset: the principal, and its client
        self._individuals: dict[tuple[str, str], Client] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close()

    def offered(self) -> Offered:
        document: Any = self._curator._sender.run(_interface())  # noqa: SLF001 - with the bounds of all replies
        with misread(f"{self._url} has no document of a service"):
            return Offered(
                datasets=_listed(document, _REGISTERS, "rule"),
                queries=_listed(document, _ASKS, "rule"),
                accountings=_listed(document, _REGISTERS, "accounting"),
                mechanisms=_listed(document, _ASKS, "mechanism"),
            )

    def register(self, dataset: str, *, rule: str, people: int, accounting: Accounting) -> Dataset:
        column = {COLUMN: {"type": "category", "size": 2 * people}}
        tables: dict[str, object] = {
            "people": {"kind": "individuals", "key": "person", "columns": column},
            "rows": {"kind": "events", "key": "person", "columns": column, "rows_per_individual": ROWS_MAX},
        }
        made = self._curator.datasets.create(
            name=dataset,
            epsilon=None if accounting.has_gaussian else accounting.amount,
            rho=accounting.amount if accounting.has_gaussian else None,
            capacity=people,
            tables=tables,
            rule=rule,
            accounting=accounting.document,
        )
        principals = [
            self._curator.principals.create(role="analyst", name=f"audit {number}", dataset=dataset)
            for number in range(ANALYSTS)
        ]
        self._analysts[dataset] = [(each.id, self._client(each.key)) for each in principals]
        return made

    def upload(self, dataset: str, table: Table, values: Values) -> None:
        if values:
            rows = [{"person": key, COLUMN: value} for key, value in values]
            self._curator.datasets.upload(dataset=dataset, table=table, data=rows)

    def ask(self, dataset: str, query: Query, *, analyst: int, key: str, reuse: bool = False) -> Released:
        asks = self._analysts[dataset][analyst][1].queries.ask
        return _released(asks(idempotency_key=key, reuse=reuse, **_document(dataset, query)))

    def ask_together(
        self, dataset: str, queries: Sequence[Query], *, analyst: int, keys: Sequence[str]
    ) -> list[Released]:
        batch = self._analysts[dataset][analyst][1].queries.batch
        return list(map(_released, batch([_document(dataset, query) for query in queries], idempotency_keys=keys)))

    def accounts(self, dataset: str) -> Mapping[str, Account]:
        exported = self._curator.datasets.export_budgets(dataset=dataset)
        with misread("the file of accounts is not readable"):
            header, *rows = (line.split(",") for line in exported.decode().splitlines())
            of_key, *places = (header.index(name) for name in _COLUMNS)
            return {row[of_key]: Account(*(int(row[place]) for place in places)) for row in rows}

    def ledger(self, dataset: str) -> Mapping[int, tuple[int, int]]:
        entries = self._curator.datasets.ledger(dataset=dataset, page_size=PAGE_SIZE)
        return {entry.sequence: (entry.charged or 0, entry.left_out or 0) for entry in entries}

    def own_account(self, dataset: str, person: str) -> tuple[Account, Receipts]:
        mine = self._individual_clients(dataset, [person])[0].me
        budgets, receipts = mine.budgets(), list(mine.receipts(page_size=PAGE_SIZE))
        with misread("the own account is not readable"):
            (own,) = budgets
            counters = (own.queries_charged, own.queries_left_out)
            return Account(_units(own.spent_rho), _units(own.budget_rho), *counters), [
                (each.sequence or 0, each.outcome, _units(each.charged_rho or Decimal(0))) for each in receipts
            ]

    def lower(self, dataset: str, limits: Mapping[str, int]) -> None:
        pairs = zip(self._individual_clients(dataset, list(limits)), limits.values(), strict=True)
        # A double has all digits of so few units, and so has its Decimal.
        _each(pairs, lambda pair: pair[0].me.lower(dataset=dataset, limit_rho=Decimal(pair[1] / UNITS_PER_RHO)))

    def set_paused(self, dataset: str, people: Sequence[str], *, is_paused: bool) -> None:
        clients = self._individual_clients(dataset, people)
        _each(clients, lambda client: (client.me.pause if is_paused else client.me.resume)(dataset=dataset))

    def erase(self, dataset: str, people: Sequence[str]) -> None:
        _each(people, lambda person: self._curator.datasets.erase(dataset=dataset, individual=person))
        for person in people:
            self._individuals.pop((dataset, person), None)

    def correct(self, dataset: str, values: Values) -> None:
        correct = self._curator.datasets.correct
        _each(values, lambda pair: correct(dataset=dataset, individual=pair[0], values={COLUMN: pair[1]}))

    def close(self, dataset: str) -> None:
        """Archive the dataset without its rows, and revoke the analysts' keys. The ledger stays."""
        self._curator.datasets.archive(dataset=dataset, rows="delete")
        for principal, _ in self._analysts.pop(dataset):
            self._curator.principals.revoke(principal=principal)

    def _client(self, key: str) -> Client:
        return Client(base_url=self._url, api_key=key, timeout=TIMEOUT_S, transport=self._transport)

    def _individual_clients(self, dataset: str, people: Sequence[str]) -> list[Client]:
        """A client for each of these people. Keys are made when they are first needed."""
        missing = [person for person in people if (dataset, person) not in self._individuals]
        if missing:
            for made in self._curator.principals.create_for(dataset=dataset, individuals=missing):
                self._individuals[dataset, made.individual] = self._client(made.api_key)
        with misread("the keys that were made are not those of the people asked for"):
            return [self._individuals[dataset, person] for person in people]


def _interface() -> Call[object]:
    """The OpenAPI document of the service."""
    return (yield get("/openapi.json"))


def _each(things: Iterable[_T], act: Callable[[_T], object]) -> None:
    """Call `act` for each thing, several at a time, because the service answers each request after a fixed delay."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(act, things))


def _document(dataset: str, query: Query) -> Any:  # noqa: ANN401 - a written query
    """The arguments of the Python client's `ask`."""
    if isinstance(query.law, Laplace):
        select = histogram(COLUMN, values=[value for each in query.coordinates for value in each])
        return {"dataset": dataset, "select": select, "scale": query.law.size}
    matrix = {  # in which, unlike in a list of weights, a row may be empty
        "starts": [0, *accumulate(map(len, query.coordinates))],
        "indices": [value for each in query.coordinates for value in each],
        "values": [weight for each in query.coordinates for weight in each.values()],
    }
    select = Item({"linear": {"column": COLUMN, "matrix": matrix}})
    asked = {"dataset": dataset, "select": select, "from_": query.table, "sigma": query.law.size}
    return asked if query.rule is None else {**asked, "rule": query.rule}


def _released(answer: Answer | APIStatusError) -> Released:
    """The answer. Raises Refused for the refusal that a batch has in an answer's place."""
    if isinstance(answer, APIStatusError):
        raise answer
    return Released(
        sequence=answer.sequence,
        values=np.array(answer.values, dtype=np.float64),
        size=answer.sigmas[0] if answer.scale is None else answer.scale,
        grid=answer.grids[0],
    )


def _units(rho: Decimal) -> int:
    """The units of an amount in rho. Raises ValueError if they are no whole number."""
    units = Fraction(rho) * UNITS_PER_RHO
    if units.denominator != 1:
        raise ValueError(f"{rho} rho are no whole number of units")
    return units.numerator


def _listed(document: Mapping[str, Any], path: str, name: str) -> tuple[str, ...]:
    """The values, or kinds of objects, that a field of the body of a POST may have; each reference is followed once."""
    schemas, seen = document["components"]["schemas"], set[str]()

    def parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """A schema and those that it is one of, by reference or in place."""
        kind = schema.get("$ref", "").rpartition("/")[2]
        if kind and kind not in seen:
            seen.add(kind)
            yield from parts(schemas[kind])
        yield schema
        for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            yield from parts(part)

    def members(schema: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
        """The parts of a member of an object."""
        return [each for part in parts(schema) for each in parts(part.get("properties", {}).get(name, {}))]

    body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    found = [each for part in members(body, name) for each in (part, *members(part, "kind"))]
    texts = [each for part in found for each in (*part.get("enum", ()), part.get("const"))]
    return tuple(dict.fromkeys(each for each in texts if isinstance(each, str)))
