"""A served dataset over Ray: a killed actor, readiness, and the starts that are refused."""

import os
import signal
import subprocess
import sys

import pytest

from clients.ray.tests.ray_head import ray_head
from tests.e2e.homes import Homes
from tests.e2e.http_calls import analyst_of, ask, client
from tests.e2e.processes import environment, new_key, served, sparing_apart, unexpected
from tests.e2e.sharded import health, insist, register
from tests.waiting import PATIENCE_S

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "hidden-token"}
NOWHERE = "127.0.0.1:1"


def test_a_killed_actor_and_a_killed_head_cost_nobody_anything(homes: Homes) -> None:
    """Their batches are answered 503; the same key is answered later, by a new actor or without Ray.

    What was answered is answered over processes with the same bytes, and nothing was charged meanwhile.
    """
    home = homes.begun()
    curator_key = new_key(home, "curator")
    with ray_head() as head:
        joining = {"SPARING_SHARDS": "2", "SPARING_RAY_ADDRESS": head.address, **head.environment}
        with served(home, **joining) as running:
            register(running.url, curator_key)
            analyst_key = analyst_of(running.url, curator_key)
            before = insist(running.url, analyst_key, "before")
            assert health(running.url, curator_key) == {"backend": "ray", "shards": 2, "ready": 2, "restarts": 0}
            os.kill(head.shards()[0], signal.SIGKILL)
            assert_refused(running.url, analyst_key, "after an actor")
            actor = insist(running.url, analyst_key, "after an actor")
            assert health(running.url, curator_key) == {"backend": "ray", "shards": 2, "ready": 2, "restarts": 1}
            assert len(head.shards()) == 2
            for pid in head.processes():
                os.kill(pid, signal.SIGKILL)
            for _ in range(2):
                assert_refused(running.url, analyst_key, "after the head")
            with client(running.url, curator_key) as curator:
                assert curator.get("/v1/datasets/survey").json()["sequence"] == 2
    with served(home, SPARING_SHARDS="2") as running:
        assert ask(running.url, analyst_key, "before").content == before.content
        assert ask(running.url, analyst_key, "after an actor").content == actor.content
        assert insist(running.url, analyst_key, "after the head").json()["sequence"] == 3
        assert health(running.url, curator_key)["backend"] == "processes"


def assert_refused(url: str, key: str, query_key: str) -> None:
    """503, with the seconds after which it is worth another try."""
    refused = ask(url, key, query_key)
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"SPARING_SHARDS": "1"}, "sparing: SPARING_RAY_ADDRESS needs SPARING_SHARDS of at least 2"),
        (
            {"SPARING_SHARDS": "2", **TOKEN},
            f"sparing: no Ray cluster answers at SPARING_RAY_ADDRESS {NOWHERE}: Connection refused",
        ),
    ],
)
def test_a_start_that_cannot_use_ray_is_refused_in_one_line(homes: Homes, settings: dict[str, str], line: str) -> None:
    """With the name of the setting, and without the token; `clients/ray/tests` refuses one without a token."""
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
    refused = subprocess.run(command, capture_output=True, text=True, env=env, timeout=PATIENCE_S, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert unexpected(refused.stderr) == ["sparing: SPARING_RAY_ADDRESS needs Ray: pip install sparing[ray]"]
