"""The whole demo, against a service that filters and adds no noise."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from sparing import APIConnectionError
from sparing_demo import DemoReport, NotTheDemo, run_demo
from sparing_demo.console import show
from sparing_demo.dataset import WebVisits


def run(service: Any, out_dir: Path, console: Console | None = None) -> DemoReport:
    """The demo as the command line starts it, without a network."""
    return run_demo(
        base_url="http://127.0.0.1:1",
        curator_key="key-of-the-curator",
        out_dir=out_dir,
        console=console or Console(file=io.StringIO(), width=100),
        transport=httpx.MockTransport(service),
    )


@pytest.fixture(scope="module", autouse=True)
def _is_read_once(web_visits: WebVisits) -> Iterator[None]:
    """Every run has the data that were read once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparing_demo.demo.read_web_visits", lambda: web_visits)
        yield


@pytest.fixture(scope="module")
def served(make_service: Callable[[], Any]) -> Any:
    """The service of the first run."""
    return make_service()


@pytest.fixture(scope="module")
def first(served: Any, tmp_path_factory: pytest.TempPathFactory) -> DemoReport:
    """A first run."""
    return run(served, tmp_path_factory.mktemp("demo") / "not" / "there")


def test_294_questions_where_worst_case_accounting_stops_at_18(first: DemoReport) -> None:
    """The main claim, and how the guarantee reaches it."""
    assert (first.answered, first.worst_case_answered) == (294, 18)
    assert first.promise == "(ε = 1, δ = 1e-6)"
    assert first.half_width_95 == 35
    assert first.worst_case_half_width_95 == pytest.approx(142, abs=1)
    assert first.inside_counted == 294
    assert first.inside == sum(result.left_out <= 35 for result in first.results)
    assert [result.certified for result in first.results] == [True] * 18 + [False] * 276
    assert first.reused == 0


def test_the_figures_follow_from_the_filter_alone(first: DemoReport, web_visits: WebVisits) -> None:
    """Without noise an answer is the truth less the people left out; a person pays for 18 areas and no more."""
    visited = web_visits.areas_visited.values()

    assert all(result.answer == result.charged == result.truth - result.left_out for result in first.results)
    assert first.budgets.people == 37_711
    assert first.budgets.out_of_budget == sum(count >= 18 for count in visited)
    assert first.budgets.spent_share_max <= 1.0
    assert first.active_share == sum(min(count, 18) for count in visited) / sum(visited)
    assert (first.account.charged, first.account.left_out, first.account.areas_visited) == (18, 17, 35)


def test_the_files(first: DemoReport) -> None:
    """A picture, a table of all answers, and the findings; none of them holds a key."""
    picture, table, findings = (first.files[name] for name in ("picture", "table", "report"))
    rows = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(rows) == 294
    assert [row["asked"] for row in rows] == [str(number) for number in range(1, 295)]
    assert json.loads(findings.read_text())["worst_case_answered"] == 18
    assert "key-of" not in table.read_text() + findings.read_text() + repr(first)


def test_a_second_run_charges_nobody(first: DemoReport, served: Any, tmp_path: Path) -> None:
    """The queries come in the same order, because they follow from the same answers; and the words say so."""
    spent = dict(served.spent)
    console = Console(file=io.StringIO(), width=100, record=True)
    second = run(served, tmp_path, console)

    assert second.reused == 294
    assert served.spent == spent
    assert [r.area for r in second.results] == [r.area for r in first.results]
    assert second.budgets == first.budgets
    assert "nothing was charged again" in " ".join(console.export_text().replace("│", " ").split())
    assert len([call for call in served.calls if call.endswith("/rows")]) == 2


@pytest.mark.usefixtures("no_waiting")
def test_a_run_that_was_cut_off_is_taken_up(service: Any, tmp_path: Path) -> None:
    """Registered, people uploaded, no visits yet, and a few queries answered later: only what is missing is done."""

    def until(mark: str, number: int) -> Callable[[httpx.Request], httpx.Response]:
        def handle(request: httpx.Request) -> httpx.Response:
            if mark in request.url.path and sum(mark in call for call in service.calls) >= number:
                raise httpx.ConnectError("the machine was switched off", request=request)
            response: httpx.Response = service(request)
            return response

        return handle

    for mark, number in (("visits/rows", 0), ("/queries", 40)):
        with pytest.raises(APIConnectionError):
            run(until(mark, number), tmp_path)
    report = run(service, tmp_path)

    assert (report.reused, report.answered) == (40, 294)
    assert len(service.ledger) == 294


def test_a_stranger_of_the_same_name_is_left_alone(service: Any, tmp_path: Path) -> None:
    """The demo never writes into a dataset of its name with other people."""
    service.tables = {"customers": {"kind": "individuals", "key": "id", "columns": {}}}

    with pytest.raises(NotTheDemo, match="web-visits"):
        run(service, tmp_path)

    assert service.calls == ["GET datasets/web-visits"]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_words_fit_any_terminal(first: DemoReport, width: int) -> None:
    """No line is wider than the terminal, and the paths can be copied."""
    console = Console(file=io.StringIO(), width=width, record=True)
    show(first, console)
    text = console.export_text()

    assert max(map(len, text.splitlines())) <= width
    assert "worst-case accounting" in text
    assert str(first.files["picture"]) in text.replace("\n", "").replace(" ", "")


@pytest.mark.usefixtures("no_waiting")
def test_an_unreachable_service_is_one_clear_error(tmp_path: Path) -> None:
    """The command line shows the error as it is."""

    def nobody(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(APIConnectionError, match=r"127\.0\.0\.1"):
        run(nobody, tmp_path)
