"""The audit through the Python client against the application itself, in one process: only the sockets are missing."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI

from sparing_audit import ACCOUNTINGS, AuditReport, RemoteService, run_audit
from sparing_audit.accountings import OF_RULES
from sparing_audit.adversaries import ADVERSARIES
from sparing_audit.noise import Gaussian
from sparing_audit.service import Query, Refused
from tests.api.world import build_world
from tests.rotation import one_of

ROOT = Path(__file__).parents[2]
VICTIMS = 240
Change = Callable[[httpx.Request, bytes], bytes]


class InProcess(httpx.BaseTransport):
    """Each request by the application, all on one event loop; `change` may alter the reply's content on its way."""

    def __init__(self, app: FastAPI, portal: BlockingPortal, change: Change) -> None:
        self._app, self._portal, self._change = app, portal, change

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        content = request.read()

        async def call() -> httpx.Response:
            sent = httpx.Request(request.method, request.url, headers=request.headers, content=content)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app)) as client:
                return await client.send(sent)

        reply = self._portal.call(call)
        headers = {"Content-Type": reply.headers.get("content-type", "application/json")}
        return httpx.Response(reply.status_code, headers=headers, content=self._change(request, reply.content))


def unchanged(_: httpx.Request, content: bytes) -> bytes:
    """The reply as it is."""
    return content


@contextmanager
def remote_service(change: Change = unchanged) -> Iterator[RemoteService]:
    """The application as the audit sees it."""
    world = build_world(upload_bytes_max=2**22)
    with (
        closing(world.replica),
        start_blocking_portal() as portal,
        RemoteService(
            base_url="http://sparing", curator_key=world.keys["curator"], transport=InProcess(world.app, portal, change)
        ) as service,
    ):
        yield service


def audit_of(
    change: Change = unchanged, *, rules: tuple[str, ...] = ("skip",), accountings: tuple[str, ...] = ()
) -> AuditReport:
    """An audit of the application."""
    with remote_service(change) as service:
        return run_audit(service, victims=VICTIMS, seed=5, name="audit", rules=rules, accountings=accountings)


def test_the_service_passes_under_a_rule_that_it_offers() -> None:
    """One on each turn of those that its own document lists."""
    rules = one_of(["clip", "drop", "skip"])
    report = audit_of(rules=tuple(rules))

    assert report.failed_checks == frozenset()
    assert {*report.offered.datasets, *report.offered.queries} == {"clip", "drop", "skip"}
    assert [rule.rule for rule in report.rules] == rules
    assert {check.adversary for check in report.rules[0].checks} == {None, *ADVERSARIES}


def test_the_service_passes_under_each_accounting() -> None:
    """With Gaussian and Laplace noise; one on each turn of those that its own document lists."""
    kinds = one_of(["gdp", "zcdp", "rdp", "pure"])
    report = audit_of(rules=(), accountings=tuple(kinds))

    assert report.failed_checks == frozenset()
    assert [each.accounting for each in report.accountings] == kinds
    assert (report.offered.accountings, report.offered.mechanisms) == (tuple(ACCOUNTINGS), ("gaussian", "laplace"))


def test_a_service_whose_accounts_lie_is_rejected() -> None:
    """By one unit of one account, in one column."""

    def lie(request: httpx.Request, content: bytes) -> bytes:
        if "budgets" not in request.url.path or not content.startswith(b"key,"):
            return content
        return content.replace(b",8796093022208,8796093022208,", b",8796093022209,8796093022208,")

    assert audit_of(lie).failed_checks == {"charges"}


def test_each_part_of_an_answer_comes_through() -> None:
    """A small dataset step by step: numbers, accounts, receipts, the ledger, acts and refusals."""
    query = Query(coordinates=({0: 3}, {}, {2: -2, 3: 1}), law=Gaussian(2.0))
    other = Query(coordinates=({1: 5},), law=Gaussian(2.0), table="rows")
    with remote_service() as service:
        made = service.register("small", rule="skip", people=3, accounting=OF_RULES)
        service.upload("small", "people", [("a", 0), ("b", 2), ("c", None)])
        service.upload("small", "rows", [("c", 1), ("c", 1)])
        first = service.ask("small", query, analyst=0, key="k")
        again = service.ask("small", query, analyst=1, key="l", reuse=True)
        with pytest.raises(Refused):
            service.ask("small", other, analyst=0, key="k")
        (second,) = service.ask_together("small", [other], analyst=1, keys=["m"])
        units = {key: account.spent for key, account in service.accounts("small").items()}
        own, receipts = service.own_account("small", "a")
        service.lower("small", {"a": own.spent + 7})
        service.set_paused("small", ["b"], is_paused=True)
        service.set_paused("small", ["b"], is_paused=False)
        service.correct("small", [("b", 3)])
        service.erase("small", ["c"])
        left = service.accounts("small")
        ledger = service.ledger("small")
        service.close("small")
        with pytest.raises(Refused):
            service.upload("small", "people", [("d", None)])

    assert (made.budget_units, made.accounting, made.unit) == (8 * 2**40, "gdp", "rho")
    assert (first.sequence, first.size, first.values.size) == (1, 2.0, 3)
    assert (again.sequence, again.values.tolist()) == (1, first.values.tolist())
    assert (second.sequence, second.values.size) == (2, 1)
    assert units == {"a": 9 * 2**37, "b": 4 * 2**37, "c": 0}
    assert receipts == [(2, "untouched", 0), (1, "charged", 9 * 2**37)]
    assert {key: (account.limit, account.charged) for key, account in left.items()} == {
        "a": (9 * 2**37 + 7, 1),
        "b": (8 * 2**40, 1),
    }
    assert ledger == {1: (2, 0), 2: (0, 1)}
