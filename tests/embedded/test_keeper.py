"""Servers that die are started again, and taken over from processes that end."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.embedded import open_servers
from service.embedded.keeper import Keeper, RestartPolicy
from service.embedded.valkey import EmbeddedValkey
from tests.logged import lines_of
from tests.rotation import times
from tests.waiting import until

KILLS = times(1, 2)
OWNER = """
import json, sys
from pathlib import Path
from service.embedded import open_servers
servers = open_servers(Path(sys.argv[1]), None, None, private_root=Path(sys.argv[2]))
print(json.dumps([servers.database_url, servers.redis_url]), flush=True)
sys.stdin.readline()
servers.stop()
print(json.dumps("stopped"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def failures() -> list[str]:
    """The reasons that keepers have given for servers that do not stay alive."""
    return []


@pytest.fixture
def cache(home: Path, private_root: Path) -> Iterator[EmbeddedValkey]:
    """A Valkey that is stopped at the end."""
    server = EmbeddedValkey(home, private_root=private_root)
    yield server
    server.stop()


def await_answer(url: str) -> int:
    """Wait until a Valkey answers, and return its process."""
    found: list[int] = []
    with redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client:

        def answers() -> bool:
            try:
                found.append(int(client.info("server")["process_id"]))
            except (redis.ConnectionError, redis.TimeoutError):
                return False
            return True

        until(answers)
    return found[0]


def test_servers_that_are_killed_answer_again_at_the_same_address(
    used: Any, failures: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Kill -9 of both, again and again: each end and each return is one line of the log."""

    def returns() -> int:
        return sum("answers again" in line for line in lines_of(caplog, "sparing.servers"))

    with open_servers(used.home, None, None, private_root=used.private_root, failed=failures.append) as servers:
        for killed in range(1, KILLS + 1):
            postmaster = int((used.data / "postmaster.pid").read_text().split()[0])
            cache_pid = await_answer(servers.redis_url)
            os.kill(postmaster, signal.SIGKILL)
            os.kill(cache_pid, signal.SIGKILL)
            assert await_answer(servers.redis_url) != cache_pid
            used.await_answer(servers.database_url)
            until(lambda wanted=2 * killed: returns() == wanted)  # type: ignore[misc]
    lines = lines_of(caplog, "sparing.servers")
    ends = [line for line in lines if "ended with -9; it is started again in 0." in line]
    assert (len(ends), len(lines), failures) == (2 * KILLS, 4 * KILLS, [])
    assert used.processes() == []


def test_one_that_does_not_stay_alive_is_told_once(cache: EmbeddedValkey, failures: list[str]) -> None:
    """With its last end, once it has ended more often than the policy allows."""
    policy = RestartPolicy(settled_s=3600, deaths_max=2, pause_s=0)
    url = cache.start()
    keeper = Keeper(cache, url, name="keep-valkey", failed=failures.append, restart_policy=policy)
    keeper.open()
    killed: set[int] = set()

    def has_failed() -> bool:
        if len(killed) < 3 and (pid := await_answer(url)) not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        return bool(failures)

    until(has_failed)
    keeper.close()

    assert len(failures) == 1
    assert failures[0].startswith("the embedded Valkey does not stay alive; quick ends: 3, the last: ")


def test_a_server_that_ran_long_enough_dies_for_the_first_time() -> None:
    """Quick deaths are counted, and their pauses double up to the longest: eight in a row take some twenty seconds."""
    policy = RestartPolicy()
    assert [policy.deaths_after(3, ready_s=ready_s) for ready_s in (None, 9.9, 10.0)] == [4, 4, 1]
    pauses = [policy.pause_after(deaths) for deaths in range(1, policy.deaths_max + 1)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_servers_of_a_process_that_ends_are_taken_over_at_the_same_address(
    used: Any, failures: list[str], start_owner: Callable[..., Any], ending: str
) -> None:
    """If it stops them or is killed, the process that used them runs them from then on, and stops them in the end."""
    owner = start_owner(OWNER, used.home, used.private_root)
    urls = owner.hear()
    with open_servers(used.home, None, None, private_root=used.private_root, failed=failures.append) as servers:
        assert [servers.database_url, servers.redis_url] == urls
        before = await_answer(servers.redis_url)
        if ending == "stopped":
            owner.end()
        else:
            owner.kill()
        until(lambda: await_answer(servers.redis_url) != before)
        used.await_answer(servers.database_url)
    assert failures == []
    assert used.processes() == []


def test_a_server_that_cannot_be_where_it_was_is_told(
    home: Path, private_root: Path, failures: list[str], start_owner: Callable[..., Any]
) -> None:
    """Something else has taken the place of its sockets: those who use it would never find it again."""
    owner = start_owner(OWNER.replace("None, None", "'postgresql://there', None"), home, private_root)
    _, url = owner.hear()
    follower = EmbeddedValkey(home, private_root=private_root)
    follower.open(start_timeout_s=1)
    policy = RestartPolicy(deaths_max=0, pause_s=0)
    keeper = Keeper(follower, url, name="keep-valkey", failed=failures.append, restart_policy=policy)
    owner.end()
    runtime = follower._runtime
    runtime.mkdir()
    keeper.open()
    until(lambda: failures)
    keeper.close()
    runtime.rmdir()

    assert url.startswith("unix://")
    assert len(failures) == 1
    assert "the embedded Valkey could not be started where it was" in failures[0]


def test_closing_ends_the_thread(cache: EmbeddedValkey, failures: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """And the server, whose end is then no failure."""
    caplog.set_level(logging.WARNING)
    keeper = Keeper(cache, cache.start(), name="keep-valkey", failed=failures.append)
    keeper.open()
    keeper.close()

    assert "keep-valkey" not in {thread.name for thread in threading.enumerate()}
    assert (failures, lines_of(caplog, "sparing"), cache.is_ours) == ([], [], False)
