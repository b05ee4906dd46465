"""Embedded servers that die under `sparing serve`, and two services on one home: no individual is charged twice."""

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from service.embedded import EmbeddedPostgres, EmbeddedValkey
from tests.e2e.asking import Asking, check_answers, kill_servers
from tests.e2e.homes import Homes, SurveyHome
from tests.e2e.http_calls import client, get
from tests.e2e.processes import SPARING, environment, new_key, served, sparing
from tests.rotation import one_of, times
from tests.waiting import PATIENCE_S


@pytest.mark.parametrize("workers", one_of(["1", "2"]))
def test_queries_are_answered_again_after_a_kill_of_both_servers(survey_home: SurveyHome, workers: str) -> None:
    """Under a client that repeats its keys: no answer is lost, no individual charged twice, failures are 503."""
    with served(survey_home.path, SPARING_WORKERS=workers) as running:
        with Asking([running.url], survey_home.analyst_key) as asking:
            asking.await_more(3)
            for _ in range(times(1, 2)):
                kill_servers(survey_home.path)
                asking.await_more(10)
            assert get(f"{running.url}/readyz").status_code == 200
        assert set(asking.failures) <= {503}
        check_answers(asking, running.url, survey_home)


def test_a_second_service_on_a_home_outlives_the_first(survey_home: SurveyHome) -> None:
    """It runs the servers once the first has ended, by SIGTERM and then by kill -9, and answers go on."""
    home = survey_home.path
    with served(home) as first, Asking([first.url], survey_home.analyst_key) as asking:
        asking.await_more(3)
        with served(home) as second:
            asking.urls.append(second.url)
            first.process.send_signal(signal.SIGTERM)
            assert first.process.wait(timeout=PATIENCE_S) == 0
            asking.await_more(10)
            with served(home) as third:
                asking.urls = [third.url]
                second.kill()
                asking.await_more(10)
                asking.end()
                check_answers(asking, third.url, survey_home)
    assert (EmbeddedPostgres(home).attach(), EmbeddedValkey(home).attach()) == (None, None)


def test_two_services_begin_one_home_at_once(homes: Homes) -> None:
    """Both serve, on one database and under one pepper."""
    home = homes.known()
    command = [*SPARING, "serve", "--home", str(home), "--port", "0"]
    patient = environment() | {"SPARING_START_TIMEOUT_MS": "120000"}
    with ExitStack() as ending:
        started = [
            ending.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=patient))
            for _ in range(2)
        ]
        for process in started:
            ending.callback(process.terminate)
        said = [process.stdout.readline() for process in started if process.stdout is not None]
        assert [line.partition(" ")[0] for line in said] == ["ready", "ready"]
        curator_key = new_key(home, "curator")
        for line in said:
            with client(line.split()[1], curator_key) as curator:
                assert curator.get("/v1/datasets").status_code == 200
    assert [process.returncode for process in started] == [0, 0]


def test_a_service_whose_servers_do_not_stay_alive_ends_with_an_error(survey_home: SurveyHome, tmp_path: Path) -> None:
    """It drains, says why in a line of its own, and exits with 1, so that its supervisor can start it again."""
    program = tmp_path / "impatient.py"
    program.write_text(
        "import service.embedded.keeper as keeper\n"
        "from service.cli.app import main\n"
        "policy = keeper.RestartPolicy(deaths_max=0)\n"
        "keeper.RestartPolicy = lambda: policy\n"
        "main()\n"
    )
    arguments = [SPARING[0], str(program), "serve", "--home", str(survey_home.path), "--port", "0"]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        kill_servers(survey_home.path)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    (line,) = [line for line in said.splitlines() if line.startswith("sparing: ")]
    assert line.startswith("sparing: the embedded ")
    assert "does not stay alive; quick ends: 1, the last: ended with -9" in line


def test_commands_name_the_server_that_does_not_answer(survey_home: SurveyHome) -> None:
    """In one line, and nothing is waited for."""
    with served(survey_home.path) as running:
        url = EmbeddedValkey(survey_home.path).attach()
        assert url is not None
        with redis.Redis.from_url(url) as cache:
            cache_pid = int(cache.info("server")["process_id"])
        os.kill(running.process.pid, signal.SIGSTOP)  # it does not start the server again
        os.kill(cache_pid, signal.SIGKILL)
        refused = sparing("keys", "list", home=survey_home.path, SPARING_START_TIMEOUT_MS="3600000")
        os.kill(running.process.pid, signal.SIGCONT)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    told = f"sparing: the embedded Valkey of {survey_home.path} does not answer; process {running.process.pid} is to"
    assert refused.stderr.startswith(told)
