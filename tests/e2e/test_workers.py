"""`sparing serve --workers 2`: two processes behind one address, as real processes on real embedded servers."""

import re
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import get
from tests.e2e.processes import children_of, living, sparing, sparing_apart
from tests.e2e.surveys import Survey, surveyed
from tests.e2e.workers import clients_of_all, workers_of
from tests.waiting import PATIENCE_S, until

ASKING = 8


@pytest.fixture
def survey(survey_home: SurveyHome, request: pytest.FixtureRequest) -> Iterator[Survey]:
    """Two workers, with settings by parameter."""
    with surveyed(survey_home, **getattr(request, "param", {})) as opened:
        yield opened


def test_two_workers_are_one_service(survey: Survey) -> None:
    """Each worker answers; what they answer is in one order; a key is executed once, at whichever worker.

    SIGTERM under load: all leave in good order, and what was answered is in a ledger that can be replayed.
    """
    with clients_of_all(survey.parent, survey.analyst) as clients, ThreadPoolExecutor(ASKING) as crowd:
        one, other = clients.values()
        answers = list(crowd.map(lambda n: survey.ask((one, other)[n % 2], f"k{n}"), range(60)))
        twice = [list(crowd.map(lambda each: survey.ask(*each), [(one, f"t{n}"), (other, f"t{n}")])) for n in range(10)]
    assert {answer.status_code for answer in answers} == {200}
    assert all(first.content == second.content for first, second in twice)
    everything = [*answers, *(first for first, _ in twice)]
    assert sorted(answer.json()["sequence"] for answer in everything) == list(range(1, 71))
    assert survey.sequences() == list(range(1, 71))

    answered = leave_under_load(survey)
    verified = sparing("ledger", "verify", home=survey.home)
    assert verified.returncode == 0
    (entries,) = map(
        int, re.findall(r"^survey: (\d+) entries, .* verified, 0 findings$", verified.stdout, re.MULTILINE)
    )
    assert entries >= max(answered, default=0)


def leave_under_load(survey: Survey) -> list[int]:
    """SIGTERM while everybody asks: the sequences that were answered until the end."""
    family = children_of(survey.parent)
    answered: list[int] = []
    warm = threading.Event()

    def keep_asking(_: int) -> None:
        with survey.analyst() as analyst:
            while True:
                try:
                    answer = survey.ask(analyst, uuid4().hex)
                except httpx.TransportError:
                    return
                if answer.status_code == 200:
                    answered.append(answer.json()["sequence"])
                    warm.set()
                else:
                    # `unavailable` is the answer of a worker whose neighbour has gone in the middle of a request.
                    problem = answer.json()["type"].rpartition(":")[2]
                    assert (answer.status_code, problem in {"draining", "unavailable"}) == (503, True)
                    assert answer.headers["retry-after"] == "1"

    with ThreadPoolExecutor(ASKING) as crowd:
        asking = crowd.map(keep_asking, range(ASKING))
        assert warm.wait(timeout=PATIENCE_S)
        survey.served.process.send_signal(signal.SIGTERM)
        assert list(asking) == [None] * ASKING
    assert survey.served.process.wait(timeout=PATIENCE_S) == 0
    until(lambda: not living(family))
    return answered


@pytest.mark.parametrize(
    "survey", [{"CHAOS": "1", "CHAOS_AT": "acknowledged:kill:6", "SPARING_METRICS_PORT": "0"}], indirect=True
)
def test_a_worker_that_is_killed_is_followed_and_forgets_nothing(survey: Survey) -> None:
    """Workers that kill themselves once an entry is durable and no client has it: every key has its one answer.

    Another worker is there afterwards, and takes connections. Kill -9 of the parent leaves no process.
    """
    metrics = [survey.served.process.stdout.readline() for _ in range(2)]  # type: ignore[union-attr]
    before = workers_of(survey.parent)
    with ThreadPoolExecutor(ASKING) as crowd:
        answers = list(crowd.map(lambda n: survey.insist(f"k{n}"), range(24)))
        again = list(crowd.map(lambda n: survey.insist(f"k{n}"), range(24)))
    assert [answer.content for answer in answers] == [answer.content for answer in again]
    assert sorted(answer.json()["sequence"] for answer in answers) == survey.sequences() == list(range(1, 25))

    until(lambda: len(workers_of(survey.parent)) == 2)
    assert workers_of(survey.parent) != before
    with clients_of_all(survey.parent, survey.analyst) as clients:
        for analyst in clients.values():
            told = {"status": "ready", "closed": {}, "datasets": {"survey": "open"}, "shards": {}}
            assert analyst.get("/readyz").json() == told
    for line in metrics:
        read = get(line.split()[1]).text
        assert 'sparing_other_requests_total{route="GET /readyz",status="200"} 1.0' in read

    family = children_of(survey.parent)
    assert len(family) >= 4
    survey.served.kill()
    until(lambda: not living(family))
    verified = sparing("ledger", "verify", home=survey.home)
    assert verified.returncode == 0
    assert re.match(r"survey: 24 entries, 24 answers, .* verified, 0 findings\n$", verified.stdout)


def test_a_fault_at_the_start_is_told_in_one_line_by_each(home: Path) -> None:
    """No traceback, exit status 1, and nothing runs on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        taken = sparing_apart("serve", "--workers", "2", "--port", "0", "--metrics-port", port, home=home)
    assert (taken.returncode, taken.stdout) == (1, "")
    lines = taken.stderr.splitlines()
    assert lines[-1] == "sparing: a worker could not start"
    assert "Traceback" not in taken.stderr
    told = f"sparing: SPARING_METRICS_HOST and SPARING_METRICS_PORT ({port}) cannot be listened on: "
    assert 1 <= sum(line.startswith(told) for line in lines) <= 2
