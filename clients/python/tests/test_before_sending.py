"""`before_sending`: the key of a query or an upload is told before anything of it is sent."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from sparing import AsyncClient, Client

README = Path(__file__).parents[1] / "README.md"
Told = tuple[str, str, Mapping[str, object]]


@pytest.fixture
def told(script: Any) -> list[tuple[int, Told]]:
    """The number of requests sent before, and what was told."""
    return []


@pytest.fixture
def telling(connect: Any, script: Any, told: list[tuple[int, Told]]) -> Any:
    """A client that tells."""
    with connect(before_sending=lambda *now: told.append((len(script.requests), now))) as client:
        yield client


def test_a_query_is_told_once_before_its_first_try(telling: Client, script: Any, told: Any, answer: Any) -> None:
    """With its dataset, the key that the answer carries, and the document that is sent."""
    script.steps = [httpx.ReadTimeout("late"), httpx.Response(503), httpx.Response(200, json=answer)]
    found = telling.queries.ask(dataset="d", sigma=20)
    assert told == [(0, ("d", found.idempotency_key, json.loads(script.bodies[0])))]
    assert script.keys == [found.idempotency_key] * 3


def test_each_query_of_a_batch_is_told_before_its_request(telling: Client, script: Any, told: Any, answer: Any) -> None:
    """The second request's when the first has been answered."""
    script.steps = [
        httpx.Response(200, json={"answers": [answer] * 2}),
        httpx.ConnectError("refused"),
        httpx.Response(200, json={"answers": [answer]}),
    ]
    questions: Any = [{"dataset": "d", "sigma": sigma} for sigma in (1, 2, 3)]
    found = list(telling.queries.batch(questions, batch_size=2))
    entries = [entry for body in (script.bodies[0], script.bodies[2]) for entry in json.loads(body)["queries"]]
    assert [(key, document) for _, (_, key, document) in told] == [
        (entry["idempotency_key"], entry["query"]) for entry in entries
    ]
    assert [before for before, _ in told] == [0, 0, 1]
    assert [each.idempotency_key for each in found] == [key for _, (_, key, _) in told]


def test_an_upload_is_told_without_its_rows(telling: Client, script: Any, told: Any) -> None:
    """The table, the format and the options."""
    script.steps = [httpx.ReadError("reset"), httpx.Response(200, json={"rows": 1, "individuals": 1})]
    telling.datasets.upload(dataset="d", table="t", data=b"a;b\n1;2\n", delimiter=";", idempotency_key="mine")
    assert told == [(0, ("d", "mine", {"table": "t", "content_type": "text/csv", "delimiter": ";"}))]


def test_requests_without_a_key_are_not_told(telling: Client, script: Any, told: Any) -> None:
    """They charge nothing and store nothing twice."""
    preview = {"dimension": 1, "grid": 1, "sigma": 2, "half_width_95": 3.9, "worst_case_rho": "0.125"}
    script.steps = [httpx.Response(200, json=preview), httpx.Response(204), httpx.Response(200, json=[])]
    telling.queries.preview(dataset="d", sigma=2)
    telling.principals.revoke(principal="p")
    assert list(telling.datasets.list()) == []
    assert told == []


@pytest.mark.parametrize("number", [1, 2])
def test_an_exception_ends_the_call_with_nothing_sent(number: int, connect: Any, script: Any) -> None:
    """A whole batch ends too, whichever of its queries could not be kept."""
    kept: list[object] = []

    def keep(*now: object) -> None:
        if len(kept) + 1 == number:
            raise OSError("the disk is full")
        kept.append(now)

    questions: Any = [{"dataset": "d", "sigma": 1}] * 3
    with connect(before_sending=keep) as client:
        with pytest.raises(OSError, match="full"):
            list(client.queries.batch(questions))
        kept[:] = [None] * (number - 1)
        with pytest.raises(OSError, match="full"):
            client.queries.ask(dataset="d", sigma=1)
        with pytest.raises(OSError, match="full"):
            client.datasets.upload(dataset="d", table="t", data=b"a\n")
    assert script.requests == []


def test_a_client_with_other_options_tells_too(telling: Client, script: Any, told: Any) -> None:
    """The options of a request do not turn it off."""
    script.steps = [httpx.Response(422)]
    with pytest.raises(Exception, match="422"):
        telling.with_options(max_retries=0).queries.ask(dataset="d", sigma=1)
    assert len(told) == 1


async def test_a_coroutine_function_is_awaited(script: Any, answer: Any) -> None:
    """Before anything is sent; the other tasks of the loop go on meanwhile."""
    script.steps = [httpx.Response(200, json=answer)]
    order: list[str] = []

    async def keep(dataset: str, idempotency_key: str, document: Mapping[str, object]) -> None:
        order.append(f"keeping {dataset} {idempotency_key} {document['noise']}")
        await asyncio.sleep(0)
        order.append(f"kept before {len(script.requests)} requests")

    transport = httpx.MockTransport(script)
    async with AsyncClient(base_url="https://x.test", api_key="k", transport=transport, before_sending=keep) as client:
        await client.queries.ask(dataset="d", sigma=1, idempotency_key="mine")
    assert order == ["keeping d mine {'sigma': 1}", "kept before 0 requests"]


async def later(*now: object) -> None:
    """Keeps nothing: nobody awaits it."""


def test_a_client_does_not_take_what_it_cannot_await(script: Any) -> None:
    """Otherwise the key would be sent without having been kept."""
    given: Any = {"base_url": "https://x.test", "api_key": "k", "transport": httpx.MockTransport(script)}
    with pytest.raises(TypeError, match="before_sending must not be a coroutine function"):
        Client(**given, before_sending=later)  # type: ignore[arg-type]
    with (
        Client(**given, before_sending=lambda *now: later(now)) as client,  # type: ignore[arg-type]
        pytest.raises(TypeError, match="before_sending returned something to be awaited"),
    ):
        client.queries.ask(dataset="d", sigma=1)
    assert script.requests == []


def test_the_example_of_the_readme_keeps_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executed as printed: a line for each query and upload."""
    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    monkeypatch.chdir(tmp_path)
    section = README.read_text(encoding="utf-8").partition("## Keys kept before anything is sent\n")[2]
    (example, *_) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {"Client": Client}
    exec(compile(example, "README.md", "exec"), names)  # noqa: S102 - our own README
    with names["client"]:
        names["keep"]("shop", "k", {"version": 1})
    assert json.loads(Path("keys.jsonl").read_text(encoding="utf-8")) == ["shop", "k", {"version": 1}]
