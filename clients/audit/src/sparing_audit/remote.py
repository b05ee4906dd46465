"""A real service under audit, through the Python client: curator, analysts and individuals, each with its own key."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Final, Self, TypeVar

import httpx
import numpy as np
from numpy.typing import NDArray

from sparing import Answer, APIStatusError, Client, SparingError, histogram, linear
from sparing._calls import Call
from sparing._errors import misread
from sparing._requests import get
from sparing_audit.accountings import Accounting
from sparing_audit.noise import UNITS_PER_RHO, Laplace
from sparing_audit.service import (
    ANALYSTS,
    Account,
    Description,
    Offered,
    OwnAccount,
    Query,
    Refused,
    Released,
    Table,
    Values,
)
from sparing_audit.victims import ROWS_MAX

__all__ = ["RemoteService"]

COLUMN: Final = "coordinate"
PAGE_SIZE: Final = 1000
TIMEOUT_S: Final = 120.0
AT_ONCE: Final = 8
_COUNTERS: Final = ("queries_charged", "queries_left_out")
_REGISTERS, _ASKS = "/v1/datasets", "/v1/datasets/{dataset}/queries"

_T = TypeVar("_T")


class RemoteService:
    """A service by its address and a curator's key; close it, or use it in a `with` statement."""

    def __init__(self, *, base_url: str, curator_key: str, transport: httpx.BaseTransport | None = None) -> None:
        """Make the curator's client; no request is sent yet. `transport` replaces the network in tests."""
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
        """The lists of the service's own document. Raises Refused where it cannot be read."""
        try:
            document: Any = self._curator._sender.run(_interface())  # noqa: SLF001 - with the bounds of all replies
            with misread("it is no document of a service"):
                return Offered(
                    datasets=_listed(document, _REGISTERS, "rule"),
                    queries=_listed(document, _ASKS, "rule"),
                    accountings=_listed(document, _REGISTERS, "accounting"),
                    mechanisms=_listed(document, _ASKS, "mechanism"),
                )
        except SparingError as error:
            raise Refused(f"{self._url} has no document of a service: {error}") from error

    def register(
        self, dataset: str, *, rule: str, people: int, amount: float, accounting: Accounting | None = None
    ) -> Description:
        column = {COLUMN: {"type": "category", "size": 2 * people}}
        tables: dict[str, object] = {
            "people": {"kind": "individuals", "key": "person", "columns": column},
            "rows": {"kind": "events", "key": "person", "columns": column, "rows_per_individual": ROWS_MAX},
        }
        unit = "epsilon" if accounting is not None and accounting.unit == "epsilon" else "rho"
        with _refusals():
            made = self._curator.datasets.create(
                name=dataset,
                **{unit: amount},  # type: ignore[arg-type]
                capacity=people,
                tables=tables,
                rule=rule,
                accounting=None if accounting is None else accounting.document,
            )
            principals = [
                self._curator.principals.create(role="analyst", name=f"audit {number}", dataset=dataset)
                for number in range(ANALYSTS)
            ]
        self._analysts[dataset] = [(each.id, self._client(each.key)) for each in principals]
        return Description(accounting=made.accounting, unit=made.unit, budget_units=made.budget_units)

    def upload(self, dataset: str, table: Table, values: Values) -> None:
        if not values:
            return
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["person", COLUMN])
        writer.writerows(values)
        with _refusals():
            self._curator.datasets.upload(dataset=dataset, table=table, file=text.getvalue().encode())

    def ask(self, dataset: str, query: Query, *, analyst: int, key: str, reuse: bool = False) -> Released:
        asks = self._analysts[dataset][analyst][1].queries.ask
        with _refusals():
            return _released(asks(idempotency_key=key, **_document(dataset, query, reuse=reuse)))

    def ask_together(
        self, dataset: str, queries: Sequence[Query], *, analyst: int, keys: Sequence[str]
    ) -> list[Released]:
        documents = [_document(dataset, query, reuse=False) for query in queries]
        with _refusals():
            return list(
                map(_released, self._analysts[dataset][analyst][1].queries.batch(documents, idempotency_keys=keys))
            )

    def accounts(self, dataset: str) -> Mapping[str, Account]:
        with _refusals():
            exported = self._curator.datasets.export_budgets(dataset=dataset)
        with misread("the file of accounts is not readable"):
            header, *rows = _rows_of(exported.decode())
            places = [header.index(name) for name in ("key", "spent_units", "budget_units", *_COUNTERS)]
            found = {}
            for row in rows:
                key, *numbers = (row[place] for place in places)
                spent, limit, charged, left_out = map(int, numbers)
                found[key] = Account(spent=spent, limit=limit, charged=charged, left_out=left_out)
            return found

    def ledger(self, dataset: str) -> Mapping[int, tuple[int, int]]:
        with _refusals():
            entries = self._curator.datasets.ledger(dataset=dataset, page_size=PAGE_SIZE)
            return {entry.sequence: (entry.charged or 0, entry.left_out or 0) for entry in entries}

    def own_account(self, dataset: str, person: str) -> OwnAccount:
        with _refusals():
            mine = self._individual_clients(dataset, [person])[0].me
            budgets, charges = mine.budgets(), list(mine.receipts(page_size=PAGE_SIZE))
        with misread("the own account is not readable"):
            (budget,) = budgets
            account = Account(
                spent=_units(budget.spent_rho),
                limit=_units(budget.budget_rho),
                charged=budget.queries_charged,
                left_out=budget.queries_left_out,
            )
            receipts = [(each.sequence or 0, each.outcome, _units(each.charged_rho or Decimal(0))) for each in charges]
            return OwnAccount(account=account, receipts=receipts)

    def lower(self, dataset: str, limits: Mapping[str, int]) -> None:
        clients = self._individual_clients(dataset, list(limits))
        units = dict(zip(clients, limits.values(), strict=True))
        _each(clients, lambda client: client.me.lower(dataset=dataset, limit_rho=_rho(units[client])))

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
        with _refusals():
            self._curator.datasets.archive(dataset=dataset, rows="delete")
            for principal, _ in self._analysts.pop(dataset):
                self._curator.principals.revoke(principal=principal)

    def _client(self, key: str) -> Client:
        return Client(base_url=self._url, api_key=key, timeout=TIMEOUT_S, transport=_Kept(self._transport))

    def _individual_clients(self, dataset: str, people: Sequence[str]) -> list[Client]:
        """A client for each, whose key is made when it is first needed."""
        missing = [person for person in people if (dataset, person) not in self._individuals]
        if missing:
            with _refusals():
                keys = self._curator.principals.create_for(dataset=dataset, individuals=missing)
            for made in keys:
                self._individuals[dataset, made.individual] = self._client(made.api_key)
        with misread("the keys that were made are not those of the people asked for"):
            return [self._individuals[dataset, person] for person in people]


def _rows_of(text: str) -> list[list[str]]:
    """The rows of a CSV. Raises ValueError."""
    try:
        return list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise ValueError(str(error)) from error


def _interface() -> Call[object]:
    """The document of the service's own interface."""
    return (yield get("/openapi.json"))


class _Kept(httpx.BaseTransport):
    """A transport that several clients share, none of which may close it."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._transport.handle_request(request)


class _Matrix:
    """The weights of a query in compressed sparse rows, in the form in which the client takes a matrix of scipy."""

    def __init__(self, coordinates: Sequence[Mapping[int, int]]) -> None:
        self.indptr: NDArray[np.int64] = np.cumsum([0, *map(len, coordinates)])
        self.indices = np.array([value for each in coordinates for value in each], dtype=np.int64)
        self.data = np.array([weight for each in coordinates for weight in each.values()], dtype=np.int64)

    def tocsr(self, copy: bool = False) -> "_Matrix":  # noqa: ARG002, FBT001, FBT002 - as scipy names it
        return self

    def sum_duplicates(self) -> None:
        """Each entry is there once."""

    def eliminate_zeros(self) -> None:
        """No weight is zero."""


@contextmanager
def _refusals() -> Iterator[None]:
    """The service's refusals as the audit calls them."""
    try:
        yield
    except APIStatusError as refusal:
        raise Refused(str(refusal)) from refusal


def _each(things: Iterable[_T], act: Callable[[_T], object]) -> None:
    """One request for each thing, several at a time, because the service answers each at a fixed delay."""
    with _refusals(), ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(act, things):
            pass


def _document(dataset: str, query: Query, *, reuse: bool) -> Any:  # noqa: ANN401 - a written query
    """The arguments of `ask`."""
    if isinstance(query.law, Laplace):
        select = histogram(COLUMN, values=[value for each in query.coordinates for value in each])
        return {"dataset": dataset, "select": select, "scale": query.law.size, "reuse": reuse}
    select = linear(COLUMN, _Matrix(query.coordinates))
    rule = {} if query.rule is None else {"rule": query.rule}
    sigma = query.law.size
    return {"dataset": dataset, "select": select, "from_": query.table, "sigma": sigma, "reuse": reuse, **rule}


def _released(answer: Answer | APIStatusError) -> Released:
    """An answer, or the refusal that a batch has in its place. Raises Refused."""
    if isinstance(answer, APIStatusError):
        raise Refused(str(answer)) from answer
    return Released(
        sequence=answer.sequence,
        values=np.array(answer.values, dtype=np.float64),
        size=answer.sigmas[0] if answer.scale is None else answer.scale,
        grid=answer.grids[0],
    )


def _units(rho: Decimal) -> int:
    """Rho in units. Raises ValueError where it is no whole number of them."""
    units = Fraction(rho) * UNITS_PER_RHO
    if units.denominator != 1:
        raise ValueError(f"{rho} rho are no whole number of units")
    return units.numerator


def _rho(units: int) -> Decimal:
    """Units in rho, with all their digits."""
    with localcontext(prec=80):
        return Decimal(units) / UNITS_PER_RHO


def _listed(document: Mapping[str, Any], path: str, name: str) -> tuple[str, ...]:
    """The values, or kinds of objects, that a field of the body of a POST may have."""
    found = document["paths"].get(path, {}).get("post", {}).get("requestBody", {})
    schema = found.get("content", {}).get("application/json", {}).get("schema", {})
    declared = _resolved(schema, document, set()).get("properties", {}).get(name, {})
    return tuple(dict.fromkeys(_texts(declared, document, set())))


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any], seen: set[str]) -> Mapping[str, Any]:
    """A schema itself, where it is a reference to one of the document's; nothing where that was `seen` before."""
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in seen:
            return {}
        seen.add(name)
        schema = document["components"]["schemas"][name]
    return schema


def _texts(schema: Mapping[str, Any], document: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    """The texts that a schema lists, and the kinds of its objects; each reference is followed once."""
    schema = _resolved(schema, document, seen)
    yield from (each for each in (*schema.get("enum", ()), schema.get("const")) if isinstance(each, str))
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _texts(part, document, seen)
    if "kind" in schema.get("properties", {}):
        yield from _texts(schema["properties"]["kind"], document, seen)
