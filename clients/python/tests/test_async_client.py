"""The asynchronous client where it is one: tasks that run at once, threads, cancellation, closing."""

import asyncio
import io
import re
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import pytest

from sparing import APIConnectionError, AsyncClient

README = Path(__file__).parents[1] / "README.md"
GIVEN: Any = {"base_url": "https://sparing.test", "api_key": "k", "environ": {}}


@pytest.fixture
async def awaited(script: Any) -> AsyncIterator[AsyncClient]:
    """An asynchronous client of `script`, as it is."""
    async with AsyncClient(**GIVEN, transport=httpx.MockTransport(script)) as found:
        yield found


async def test_queries_are_asked_at_once(answer: Any) -> None:
    """The second begins before the first is answered."""
    both_asked = asyncio.Event()
    asked: list[str] = []

    async def service(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["Idempotency-Key"])
        if len(asked) == 2:
            both_asked.set()
        await both_asked.wait()
        return httpx.Response(200, json=answer)

    async with AsyncClient(**GIVEN, transport=httpx.MockTransport(service)) as client:
        queries = (client.queries.ask(dataset="d", sigma=1, idempotency_key=key) for key in "ab")
        found = await asyncio.gather(*queries)
    assert [each.idempotency_key for each in found] == ["a", "b"]


@dataclass
class Gate:
    """Holds up the reading of files while it is shut."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)


class Watched:
    """An open file that remembers the threads that read it; it can be held up, and must not be closed meanwhile."""

    def __init__(self, file: BinaryIO, gate: Gate) -> None:
        self.file, self.gate, self.threads = file, gate, set[int]()
        self.is_closed, self.was_closed_while_reading = False, False

    def read(self, size: int = -1) -> bytes:
        self.threads.add(threading.get_ident())
        self.gate.reached.set()
        self.gate.opened.wait(30)
        self.was_closed_while_reading = self.is_closed
        return self.file.read(size)

    def close(self) -> None:
        self.is_closed = True
        self.file.close()


@pytest.fixture
def gate() -> Gate:
    """Open, until a test shuts it."""
    found = Gate()
    found.opened.set()
    return found


@pytest.fixture
def opened(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    """Every file that is opened for an upload, after the look at its first bytes."""
    found: list[Watched] = []

    def watched(source: Path) -> Any:
        def opening() -> Watched:
            found.append(Watched(source.open("rb"), gate))
            return found[-1]

        return opening, "text/csv"

    monkeypatch.setattr("sparing._verbs.uploads.content_of", watched)
    return found


async def test_a_file_is_read_in_threads_and_closed(script: Any, opened: list[Watched], tmp_path: Path) -> None:
    """Opened anew for each try; `progress` is called in the thread of the loop, whose other tasks go on."""
    where, here = tmp_path / "rows.csv", threading.get_ident()
    where.write_bytes(b"a\n" * 100_000)
    script.steps = [httpx.Response(503), httpx.Response(200, json={"rows": 1, "individuals": 1})]
    told: list[tuple[int, int]] = []
    async with AsyncClient(**GIVEN, transport=httpx.MockTransport(script), rng=lambda: 0.0) as client:
        await client.datasets.upload(
            dataset="d", table="t", file=where, progress=lambda sent, _: told.append((sent, threading.get_ident()))
        )
    assert script.bodies == [b"a\n" * 100_000] * 2
    assert [file.is_closed for file in opened] == [True, True]
    assert here not in set().union(*(file.threads for file in opened))
    assert {thread for _, thread in told} == {here}
    assert told[-1][0] == 200_000


class Stuck(httpx.AsyncBaseTransport):
    """Takes one chunk of a body, and then nothing."""

    def __init__(self) -> None:
        self.has_taken = asyncio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        stream: Any = request.stream
        await anext(aiter(stream))
        self.has_taken.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_cancelled_upload_closes_its_file(opened: list[Watched], tmp_path: Path) -> None:
    """Between two chunks."""
    where, transport = tmp_path / "rows.csv", Stuck()
    where.write_bytes(b"a\n" * 100_000)
    async with AsyncClient(**GIVEN, transport=transport) as client:
        task = asyncio.create_task(client.datasets.upload(dataset="d", table="t", file=where))
        await transport.has_taken.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [file.is_closed for file in opened] == [True]


async def test_a_file_is_not_closed_under_the_thread_that_reads_it(
    gate: Gate, opened: list[Watched], tmp_path: Path
) -> None:
    """A cancelled upload waits for it."""
    where, transport = tmp_path / "rows.csv", Stuck()
    where.write_bytes(b"a\n")
    gate.opened.clear()
    async with AsyncClient(**GIVEN, transport=transport) as client:
        task = asyncio.create_task(client.datasets.upload(dataset="d", table="t", file=where))
        await asyncio.to_thread(gate.reached.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        assert not opened[0].is_closed
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [(file.is_closed, file.was_closed_while_reading) for file in opened] == [(True, False)]


async def test_the_source_is_looked_at_in_a_thread(awaited: AsyncClient, script: Any, gate: Gate) -> None:
    """An open file is read wholly before it is sent, which may take long."""
    script.steps = [httpx.Response(200, json={"rows": 1, "individuals": 1})]
    source: Any = Watched(io.BytesIO(b"a\n1\n"), gate)
    await awaited.datasets.upload(dataset="d", table="t", data=source)
    assert script.bodies == [b"a\n1\n"]
    assert source.threads
    assert threading.get_ident() not in source.threads


async def test_an_exception_of_progress_ends_the_upload(awaited: AsyncClient, script: Any) -> None:
    """The exception of `progress` reaches the caller."""

    def progress(sent: int, total: int | None) -> None:
        raise RuntimeError(f"{sent} of {total}")

    with pytest.raises(RuntimeError, match="0 of 2"):
        await awaited.datasets.upload(dataset="d", table="t", file=b"a\n", progress=progress)


async def test_waits_leave_the_loop_to_others(script: Any, answer: Any) -> None:
    """By `asyncio.sleep`, unless another sleep is given."""
    script.steps = [httpx.Response(503), httpx.Response(200, json=answer)]
    order: list[str] = []

    async def other() -> None:
        order.append("other task")

    async with AsyncClient(**GIVEN, transport=httpx.MockTransport(script), rng=lambda: 0.0) as client:
        asked = asyncio.create_task(client.queries.ask(dataset="d", sigma=1))
        asked.add_done_callback(lambda _: order.append("answered"))
        await asyncio.gather(asked, other())
    assert order == ["other task", "answered"]


async def test_a_closed_client_is_closed(script: Any) -> None:
    """The `async with` statement closes the connections; closing twice is harmless, and closes the shared ones."""
    async with AsyncClient(**GIVEN, transport=httpx.MockTransport(script)) as client:
        quick = client.with_options(timeout=1)
    await quick.aclose()
    for closed in (client, quick):
        with pytest.raises(APIConnectionError, match="this client is closed"):
            await closed.allowances.list()
    assert repr(quick) == "AsyncClient(base_url='https://sparing.test', api_key='********')"


async def test_the_example_of_the_readme_runs(script: Any, answer: Any, monkeypatch: Any, capsys: Any) -> None:
    """Executed as printed, against a fake service."""
    batch = {"answers": [answer, {"type": "urn:sparing:problem:invalid-request", "status": 422, "detail": "No."}]}

    async def service(_: Any, request: httpx.Request) -> httpx.Response:
        await request.aread()
        found = batch if request.url.path.endswith("/batch") else answer
        return httpx.Response(200, json=found)

    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", service)
    section = README.read_text(encoding="utf-8").partition("\n## Async\n")[2].partition("\n## ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example.replace("asyncio.run(main())", ""), "README.md", "exec"), names)  # noqa: S102 - our own README
    await names["main"]()
    assert capsys.readouterr().out == "42 42\n42 ± 39\n422 No.\n"
