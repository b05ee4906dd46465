"""A served dataset over Ray: a killed actor, readiness, and the starts that are refused."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.homes import Homes
from tests.e2e.http_calls import analyst_of, ask, client
from tests.e2e.processes import environment, new_key, served, sparing_apart, unexpected
from tests.e2e.sharded import health, insist, register
from tests.store.shards.ray_head import RayHead, ray_head
from tests.waiting import until

pytestmark = pytest.mark.slow
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "hidden-token"}
NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    """A cluster on loopback."""
    with ray_head() as started:
        yield started


def test_a_killed_actor_costs_nobody_anything(homes: Homes, head: RayHead) -> None:
    """Its batch is answered 503, the same key later; no actor is left once the service has stopped."""
    home = homes.begun()
    curator_key = new_key(home, "curator")
    joining = {"SPARING_SHARDS": "2", "SPARING_RAY_ADDRESS": head.address, **head.environment}
    with served(home, **joining) as running:
        register(running.url, curator_key)
        analyst_key = analyst_of(running.url, curator_key)
        before = insist(running.url, analyst_key, "before")
        assert health(running.url, curator_key) == {"backend": "ray", "shards": 2, "ready": 2, "restarts": 0}
        os.kill(head.shards()[0], signal.SIGKILL)
        refused = ask(running.url, analyst_key, "after")
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) >= 1
        after = insist(running.url, analyst_key, "after")
        assert health(running.url, curator_key) == {"backend": "ray", "shards": 2, "ready": 2, "restarts": 1}
        assert len(head.shards()) == 2
    until(lambda: head.shards() == [])
    with served(home, SPARING_SHARDS="2") as running:
        assert ask(running.url, analyst_key, "before").content == before.content
        assert ask(running.url, analyst_key, "after").content == after.content
        assert health(running.url, curator_key)["backend"] == "processes"


def test_a_killed_head_costs_nobody_anything(homes: Homes) -> None:
    """The shards are lost until a cluster is there again; the service goes on, and ends as it should.

    What was answered before is answered over processes with the same bytes, and nothing was charged meanwhile.
    """
    home = homes.begun()
    curator_key = new_key(home, "curator")
    with ray_head() as cluster:
        joining = {"SPARING_SHARDS": "2", "SPARING_RAY_ADDRESS": cluster.address, **cluster.environment}
        with served(home, **joining) as running:
            register(running.url, curator_key)
            analyst_key = analyst_of(running.url, curator_key)
            before = insist(running.url, analyst_key, "before")
            for pid in cluster.processes():
                os.kill(pid, signal.SIGKILL)
            for _ in range(2):
                refused = ask(running.url, analyst_key, "after")
                assert refused.status_code == 503
                assert int(refused.headers["Retry-After"]) >= 1
            with client(running.url, curator_key) as curator:
                assert curator.get("/v1/datasets/survey").json()["sequence"] == 1
    with served(home, SPARING_SHARDS="2") as running:
        assert ask(running.url, analyst_key, "before").content == before.content
        assert insist(running.url, analyst_key, "after").json()["sequence"] == 2


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"SPARING_SHARDS": "1"}, "sparing: SPARING_RAY_ADDRESS needs SPARING_SHARDS of at least 2"),
        ({"SPARING_SHARDS": "2"}, "sparing: SPARING_RAY_ADDRESS needs a token: RAY_AUTH_MODE=token, and "),
        (
            {"SPARING_SHARDS": "2", **TOKEN},
            f"sparing: no Ray cluster answers at SPARING_RAY_ADDRESS {NOWHERE}: Connection refused",
        ),
    ],
)
def test_a_start_that_cannot_use_ray_is_refused_in_one_line(homes: Homes, settings: dict[str, str], line: str) -> None:
    """With the name of the setting, and without the token."""
    refused = sparing_apart("serve", "--port", "0", home=homes.begun(), SPARING_RAY_ADDRESS=NOWHERE, **settings)
    assert (refused.returncode, refused.stdout) == (1, "")
    (said,) = unexpected(refused.stderr)
    assert said.startswith(line)
    assert TOKEN["RAY_AUTH_TOKEN"] not in said


def test_a_start_without_ray_is_refused_in_one_line(homes: Homes) -> None:
    """With the command that installs it."""
    hidden = "import sys; sys.modules['ray'] = None; from service.cli.app import main; main()"
    command = [sys.executable, "-c", hidden, "serve", "--port", "0", "--home", str(homes.begun())]
    env = {**environment(), **TOKEN, "SPARING_SHARDS": "2", "SPARING_RAY_ADDRESS": NOWHERE}
    refused = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert unexpected(refused.stderr) == ["sparing: SPARING_RAY_ADDRESS needs Ray: pip install sparing[ray]"]
