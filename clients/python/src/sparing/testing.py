"""A fake service for the tests of analysts' own code: no server, no privacy, and exact answers.

from sparing.testing import FakeService

def test_the_report_counts_people():
    with FakeService() as fake:
        fake.add_dataset("shop", tables, rows={"people": [{"person_id": "a", "age": 41}]})
        assert report(fake.client()) == "1 person"

It runs the service's own query language, engine and accounts, and needs `pip install "./clients/python[testing]"` in a
clone. Each individual has a limit, and is left out of a query that it cannot afford. Only the HTTP is the fake's own:
it has no rate limits, no time slots, and no calls of curators, individuals and auditors.
"""

import json
import random
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from sparing import AsyncClient, Client, Dataset
from sparing._closing import Closing
from sparing._models import KeyComparison
from sparing._reply_words import REPLY_TO
from sparing._testing_dataset import Number, dataset_of, registered_dataset, stated_accounting, units_of
from sparing._testing_http import (
    OTHERS,
    Refused,
    Route,
    document_of,
    refuse_other_parameters,
    route_of,
    unknown_dataset,
)
from sparing._testing_parameters import json_in
from sparing._testing_service import Analyst, Answering, Registered, Service, Values

__all__ = ["FakeService", "ReceivedRequest"]

CAPACITY = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """One received request, without its API key: `path` begins with `/v1/`, `json` is the body."""

    method: str
    path: str
    params: Mapping[str, str]
    json: Any = None
    idempotency_key: str | None = None


class FakeService(Closing):
    """A service in memory, behind `transport`; use it in a `with` statement, or close it. Threads may share it.

    Attributes:
        url: the address of the service, which exists in no network.
        api_key: the API key of an analyst of all datasets; `add_analyst` makes others.
        transport: a transport of httpx, for `Client(transport=...)` and for `AsyncClient(transport=...)`.
        requests: every request received, in order.
    """

    def __init__(self, *, noise: bool = False, seed: int = 0) -> None:
        """Make a service without datasets. Answers from rows are exact; `noise` adds noise, drawn from `seed`."""
        self.url = "https://sparing.test"
        self.api_key = "fake-analyst-key"
        self.requests: list[ReceivedRequest] = []
        self.transport = httpx.MockTransport(self._handle)
        self._service = Service(has_noise=noise, rng=random.Random(seed))  # noqa: S311 - repeatable, not secret
        self._service.analysts[self.api_key] = Analyst()
        self._faults: deque[Callable[[httpx.Request], None]] = deque()
        self._lost = 0
        self._clients: list[Client] = []
        self._lock = threading.Lock()

    @property
    def queries(self) -> list[Any]:
        """The documents of all queries asked, those of batches too, but no previews, in the order of the requests."""
        asked: list[Any] = []
        for request in self.requests:
            if request.path.endswith("/queries") and request.method == "POST":
                asked.append(request.json)
            elif request.path.endswith("/queries/batch"):
                asked += [entry["query"] for entry in request.json["queries"]]
        return asked

    def add_dataset(
        self,
        dataset: str | Dataset,
        tables: Mapping[str, object] | None = None,
        *,
        rows: Mapping[str, object] | None = None,
        capacity: int = CAPACITY,
        limit_floor_rho: Number | None = None,
        accounting: str | Mapping[str, object] = "gdp",
        keys: KeyComparison = "exact",
        monitor: Mapping[str, object] | None = None,
        **guarantee: Number,
    ) -> None:
        """Add a dataset by its name and tables, or as a real service describes it (`client.datasets.get`).

        Args:
            dataset: the name; or a `Dataset`, which has everything but the rows.
            tables: the public schema, as a curator registers it.
            rows: the rows to answer from, by table, as `add_rows` takes them.
            capacity: the public bound on the number of individuals, which the rows may not exceed.
            limit_floor_rho: the smallest limit; default: the budget, or 0 for a table with a column of limits.
            accounting: the accounting as a curator states it, such as `{"kind": "rdp", "order": 16}`; default: Gaussian
                DP.
            keys: the comparison of individuals' keys: "exact", "caseless", "number" or "uuid".
            monitor: the continual count of exhausted individuals, with `rho`, `ticks` and `share`.
            guarantee: `epsilon` and `delta`, or `rho`; or `epsilon` alone under "pure" accounting. Default: a rho of 1.

        Raises:
            ValueError: the schema, the guarantee or a row is wrong, or the name is taken.
        """
        if isinstance(dataset, Dataset):
            found = dataset_of(dataset)
        elif tables is None:
            raise ValueError("give the tables of the dataset")
        else:
            found = registered_dataset(
                dataset, tables, capacity, limit_floor_rho, stated_accounting(accounting), keys, monitor, guarantee
            )
        if found.name in self._service.datasets:
            raise ValueError(f"there is a dataset {found.name!r} already")
        for table in sorted(rows or {}, key=lambda table: table != found.schema.individuals_name):
            found.add(table, (rows or {})[table])
        self._service.datasets[found.name] = found

    def add_rows(self, dataset: str, table: str, rows: object) -> None:
        """Add rows to answer from: mappings from column to value, or a frame of pandas, polars or pyarrow.

        A column that a row lacks is NULL; limits, and values outside their domain, are treated as in an upload. Raises
        ValueError, which names the row and the column, and then keeps none of the rows.
        """
        self._service.datasets[dataset].add(table, rows)

    def add_analyst(self, *, dataset: str | None = None, allowance_rho: Number | None = None) -> str:
        """Add an analyst of one dataset or of all, with or without an allowance, and return its API key."""
        key = f"fake-analyst-key-{len(self._service.analysts) + 1}"
        units = None if allowance_rho is None else units_of(allowance_rho)
        self._service.analysts[key] = Analyst(dataset=dataset, allowance_units=units)
        return key

    def answer(self, values: Values | Answering, *, sigma: float | None = None) -> None:
        """Register the numbers of the next fresh answer, one for each coordinate, or a function for all later ones.

        Registered answers are used in their order, and before the rows. A query that is repeated, or reused under
        another key, gets its first answer and uses up no registered one. Values are rounded to the query's grid.

        A function is called with the query in canonical form and returns its values, or None to answer from the rows.
        `sigma` goes with values, and the answer states it instead of the query's own sigma. For a wrong number of
        values, asking the query raises ValueError.
        """
        if callable(values):
            if sigma is not None:
                raise ValueError("sigma goes with values, not with a function")
            self._service.answering = values
        else:
            self._service.registered.append(Registered(values=values, sigma=sigma))

    def refuse(
        self, status: int, slug: str, *, detail: str | None = None, times: int = 1, retry_after_s: int | None = None
    ) -> None:
        """Answer the next requests with a problem document: `refuse(503, "unavailable", times=2)`."""
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}

        def fail(_: httpx.Request) -> None:
            raise Refused(slug, detail, status=status, headers=headers)

        self._faults.extend([fail] * times)

    def break_connection(self, *, times: int = 1, after: bool = False) -> None:
        """Break the connection of the next requests: before they arrive, or `after` they were carried out."""

        def fail(request: httpx.Request) -> None:
            if not after:
                raise httpx.ConnectError("the fake service is unreachable", request=request)
            self._lost += 1

        self._faults.extend([fail] * times)

    def open_epoch(self, dataset: str) -> None:
        """Open the dataset's next epoch, in which no earlier answer is reused."""
        found = self._service.datasets[dataset]
        found.epoch += 1
        found.released.clear()

    def client(self, *, api_key: str | None = None, **options: Any) -> Client:  # noqa: ANN401 - of `Client`
        """A client of this service, which never sleeps between retries. Closing the service closes it."""
        defaults = {"transport": self.transport, "sleep": lambda _: None, "environ": {}}
        made = Client(base_url=self.url, api_key=api_key or self.api_key, **{**defaults, **options})
        self._clients.append(made)
        return made

    def async_client(self, *, api_key: str | None = None, **options: Any) -> AsyncClient:  # noqa: ANN401 - as above
        """An `AsyncClient` of this service, which never sleeps between retries; close it with `aclose`."""

        async def sleep(_: float) -> None: ...

        defaults = {"transport": self.transport, "sleep": sleep, "environ": {}}
        return AsyncClient(base_url=self.url, api_key=api_key or self.api_key, **{**defaults, **options})

    def close(self) -> None:
        """Close the clients that this service has made."""
        while self._clients:
            self._clients.pop().close()

    def _handle(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            self.requests.append(_received(request))
            request_id = uuid.UUID(int=len(self.requests)).hex
            words = {REPLY_TO: request.headers[REPLY_TO]} if REPLY_TO in request.headers else {}
            headers = {"X-Request-Id": request_id, **words}
            try:
                fault = self._faults.popleft() if self._faults else None
                if fault is not None:
                    fault(request)
                reply = httpx.Response(200, json=self._reply(request, request_id), headers=headers)
            except Refused as refusal:
                kind = {"Content-Type": "application/problem+json"}
                body = json.dumps(document_of(refusal, request_id)).encode()
                reply = httpx.Response(refusal.status, content=body, headers={**headers, **refusal.headers, **kind})
            if self._lost:
                self._lost -= 1
                raise httpx.ReadError("the fake service's reply was lost", request=request)
            return reply

    def _reply(self, request: httpx.Request, request_id: str) -> object:
        route = route_of(request)
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        analyst = self._service.analysts.get(key)
        if analyst is None or scheme.lower() != "bearer":
            raise Refused("unauthorized", headers={"WWW-Authenticate": "Bearer"})
        name = route.parts.get("dataset")
        if name is not None and analyst.dataset not in (None, name):
            raise unknown_dataset(name, [analyst.dataset or ""])
        if route.name in OTHERS:
            raise Refused("role-required", f"This request needs a key with the role {OTHERS[route.name]}.")
        refuse_other_parameters(route, request)
        return self._of_analyst(route, analyst, request, request_id)

    def _of_analyst(self, route: Route, analyst: Analyst, request: httpx.Request, request_id: str) -> object:
        service, name, content = self._service, route.parts.get("dataset", ""), request.content
        key = request.headers.get("Idempotency-Key")
        handlers: Mapping[str, Callable[[], object]] = {
            "GET /datasets": lambda: service.list_datasets(analyst, request.url.params),
            "GET /datasets/{dataset}": lambda: service.dataset(analyst, name).document(),
            "GET /datasets/{dataset}/monitor": lambda: service.monitor(analyst, name),
            "POST /datasets/{dataset}/queries": lambda: service.ask(analyst, name, key, content),
            "DELETE /datasets/{dataset}/queries": lambda: service.cancel(analyst, name, key),
            "POST /datasets/{dataset}/queries/preview": lambda: service.preview(analyst, name, content),
            "POST /datasets/{dataset}/queries/batch": lambda: service.ask_many(analyst, name, content, request_id),
            "GET /queries": lambda: service.releases(analyst, request.url.params),
            "GET /queries/{query}": lambda: service.release(analyst, route.parts["query"]),
            "GET /allowances": lambda: service.allowances(analyst),
        }
        return handlers[route.name]()


def _received(request: httpx.Request) -> ReceivedRequest:
    return ReceivedRequest(
        method=request.method,
        path=request.url.path,
        params=dict(request.url.params),
        json=json_in(request.read()),
        idempotency_key=request.headers.get("Idempotency-Key"),
    )
