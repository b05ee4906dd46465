"""The log: its fields, its two forms, repetitions folded, and no text of an exception."""

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service import logs
from service.incidents import REQUEST_ID, report_incident
from service.logs import FIELDS, FoldingHandler, configure_logs
from tests.architecture.source import ROOT, modules
from tests.run.raw_server import RawServer, raw_server
from tests.waiting import until

SECRET = "Kari Nordmann, 42"
LOGGERS = {"library", "sparing.alarm", "sparing.incidents", "sparing.test"}


class WrittenLog:
    """The log of this process, and its lines."""

    def __init__(self, style: Any = "json") -> None:
        self.stream = io.StringIO()
        self.handler = configure_logs(style, self.stream)

    def read(self) -> list[dict[str, Any]]:
        """The lines of the tests' loggers so far."""
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["logger"] in LOGGERS]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[WrittenLog]:
    """The log as JSON; as it was before after the test."""
    root, ours = logging.getLogger(), logging.getLogger("sparing").level
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    yield WrittenLog()
    for handler in [each for each in root.handlers if isinstance(each, FoldingHandler)]:
        root.removeHandler(handler)
        handler.close()
    logging.getLogger("sparing").setLevel(ours)


def fail(text: str = SECRET) -> None:
    """Fail with a message that quotes a record."""
    raise ValueError(text)


def incident(about: str, dataset: str | None = None) -> None:
    """Report a failure."""
    try:
        fail()
    except ValueError as error:
        report_incident(error, about, dataset=dataset)


def test_a_line_has_its_fields(log: WrittenLog) -> None:
    """Time, level, logger, event, the id of the request, dataset, error and places, and nothing else."""
    token = REQUEST_ID.set("r1")
    incident("checkpoint of dataset 1", "survey")
    REQUEST_ID.reset(token)
    logging.getLogger("sparing.alarm").info("delivered to %s", "survey")
    first, second = log.read()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first.pop("at").startswith("test_logs.fail:")
    assert first == {
        "level": "error",
        "logger": "sparing.incidents",
        "event": "incident checkpoint of dataset 1",
        "request_id": "r1",
        "dataset": "survey",
        "error": "builtins.ValueError",
    }
    assert (second["event"], second["level"]) == ("delivered to survey", "info")
    assert {*first, *second} < {*FIELDS}


def test_repetitions_are_counted(log: WrittenLog) -> None:
    """The first is written at once, the others as a number; another dataset's fault is another line."""
    for number in range(5):
        incident(f"request_id=r{number}", "survey")
    incident("request_id=r9", "care")
    assert [line["dataset"] for line in log.read()] == ["survey", "care"]
    log.handler.write_repeats()
    incident("request_id=r10", "survey")
    assert [line.get("count") for line in log.read()] == [None, None, 4]
    log.handler.close()
    assert [line.get("count") for line in log.read()] == [None, None, 4, 1]
    log.handler.write_repeats()
    incident("request_id=r11", "survey")
    assert [line.get("count") for line in log.read()] == [None, None, 4, 1, None]


@pytest.mark.usefixtures("log")
def test_repetitions_are_written_without_another_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread writes them every minute."""
    monkeypatch.setattr(logs, "FOLDED_S", 0.001)
    log = WrittenLog()
    with log.handler.lock or threading.RLock():
        incident("one", "survey")
        incident("two", "survey")
    until(lambda: log.read()[-1].get("count") == 1)


def test_different_lines_are_forgotten_at_a_bound(log: WrittenLog) -> None:
    """A thousand and more faults take no more memory."""
    for number in range(2000):
        logging.getLogger("sparing.test").warning("fault %d", number)
    assert len(log.read()) == 2000
    assert len(log.handler._lines) <= logs.FOLDS_MAX


def test_no_text_of_an_exception_is_written(log: WrittenLog) -> None:
    """Not of our own, not in a library's message, not behind its first line, and not of a thread that dies."""
    theirs = logging.getLogger("library")
    try:
        fail()
    except ValueError as error:
        theirs.exception("it failed")
        theirs.warning("it failed with %s", error)
        theirs.error("Task exception was never retrieved\nfuture: %r", error)
    thread = threading.Thread(target=fail, name="broken")
    thread.start()
    thread.join()
    written = log.read()
    assert [line["event"] for line in written] == [
        "it failed",
        "it failed with builtins.ValueError",
        "Task exception was never retrieved",
        "incident thread broken",
    ]
    assert [line.get("error") for line in written] == ["builtins.ValueError", None, None, "builtins.ValueError"]
    assert SECRET not in json.dumps(written)


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize("logger", ["sparing.test", "library"])
@pytest.mark.usefixtures("log")
def test_no_text_begins_a_line_of_its_own(style: Any, logger: str) -> None:
    """Ends of lines and the characters that steer a terminal are written as escapes, or not at all."""
    log = WrittenLog(style)
    logging.getLogger(logger).warning("one %s", "\r\v\x1b[2J\x85\u2028\u202e\nforged")
    (line,) = log.stream.getvalue().splitlines()
    assert "one" in line
    assert line.isprintable()
    assert ("forged" in line) == (logger == "sparing.test")


def test_the_document_names_every_logger_and_field() -> None:
    """It names those of the service's modules, and no other."""
    page = (ROOT / "docs/watching.md").read_text(encoding="utf-8").partition("\n## Logs\n")[2].partition("\n## ")[0]
    fields, loggers = (
        part.partition("|---|---|\n")[2].partition("\n\n")[0] for part in re.split(r"(?=\| Logger \|)", page)
    )
    texts = [found.text for found in modules("service")]
    named = {name for text in texts for name in re.findall(r'getLogger\("(sparing\.\w+)"\)', text)}
    assert len(named) > 5
    assert {
        name for row in loggers.splitlines() for name in re.findall(r"`(sparing\.\w+)`", row.split("|")[1])
    } == named
    assert [name for row in fields.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])] == [*FIELDS]


def test_the_log_goes_to_stderr_alone() -> None:
    """No module of the service opens another place for it: no file, socket, mail or journal."""
    for found in modules("service"):
        assert not re.search(r"logging\.handlers|syslog|FileHandler|basicConfig|dictConfig|fileConfig", found.text), (
            found.path
        )


@pytest.mark.parametrize(("style", "is_json"), [(None, True), ("json", True), ("console", False)])
@pytest.mark.usefixtures("log")
def test_the_form_is_chosen_or_follows_the_terminal(style: Any, is_json: bool) -> None:
    """JSON for everything but a terminal."""
    log = WrittenLog(style)
    logging.getLogger("sparing.test").warning("once", extra={"dataset": "survey"})
    text = log.stream.getvalue()
    assert text.startswith("{") is is_json
    assert all(part in text for part in ("once", "survey", "warning", "sparing.test"))
    assert "\x1b" not in text


def test_a_server_logs_nothing_of_individuals() -> None:
    """Refusals, failures and large bodies of requests that carry keys, names and values; each fault is one line."""
    with raw_server(SPARING_UPLOAD_BYTES_MAX="1000") as server:
        answers = _tried(server, httpx.Client(base_url=server.url))
        server.stop()
        text = server.log_text
    written = [json.loads(line) for line in text.splitlines()]
    assert answers >= {200, 401, 404, 413, 422, 500}
    assert [line["event"] for line in written if line["logger"] == "sparing.uploads"] == [
        "a body of more than 1000 bytes was refused"
    ] * 2
    failure, again = (line for line in written if line.get("error") == "builtins.ValueError")
    assert (failure["request_id"], again["count"]) == ("r0", 2)
    for secret in (server.curator_key, server.curator_key[-20:], "ann", "Kari", "Nordmann", "44,10"):
        assert secret not in text


def _tried(server: RawServer, client: httpx.Client) -> set[int]:
    """The statuses of requests that are refused, fail or succeed."""
    headers = {"Authorization": f"Bearer {server.curator_key}"}
    people, rows = "/v1/datasets/survey/individuals", "/v1/datasets/survey/tables/people/rows"
    csv = {**headers, "Content-Type": "text/csv"}
    responses = [
        client.get("/v1/datasets", headers=headers),
        client.get("/v1/datasets", headers={"Authorization": f"Bearer {server.curator_key}x"}),
        client.delete(f"{people}/Kari Nordmann", headers=headers),
        client.post(rows, headers=csv, content="person_id,country,age,spend\nKari Nordmann,NO,44,10 Nordmann\n"),
        *(client.post(rows, headers=csv, content="Kari,NO,44,10\n" * 1000) for _ in range(3)),
        *(client.get("/fails/Kari", headers={**headers, "X-Request-Id": f"r{number}"}) for number in range(3)),
    ]
    client.close()
    return {response.status_code for response in responses}
