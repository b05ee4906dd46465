"""Shards on Ray, really started: they do what an object of this process does, and nothing listens beyond loopback."""

import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from clients.ray.tests.ray_head import RayHead, listening, ray_head
from service.ledger.ports.shards import ShardChannel, ShardLost, ShardsUnusable
from service.store.shards import process
from sparing_ray.shards import RayShard, RayShards, check_secrecy, ray_environment
from tests.contracts.shard_channels import PLACE, ShardChannelContract, check_batches
from tests.contracts.stores import dataset
from tests.rotation import times
from tests.waiting import until

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "secret"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayHead]:
    """One cluster for all tests."""
    with ray_head() as started:
        yield started


@pytest.fixture
def head(cluster: RayHead, monkeypatch: pytest.MonkeyPatch) -> RayHead:
    """The cluster, with the environment that is needed to join it."""
    for name, text in cluster.environment.items():
        monkeypatch.setenv(name, text)
    return cluster


class TestRay(ShardChannelContract):
    """The contract of a shard channel holds for an actor."""

    @pytest.fixture(autouse=True)
    def _at(self, head: RayHead) -> None:
        self.head = head

    def opened(self) -> ShardChannel:
        return RayShard(dataset(), PLACE, self.head.address)


@pytest.fixture
def shard(head: RayHead, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayShard]:
    """The only shard on the cluster, started while this process' environment has a secret."""
    monkeypatch.setenv("SPARING_PEPPER", "hidden")
    until(lambda: head.shards() == [])
    started = RayShard(dataset(), PLACE, head.address)
    load(started)
    yield started
    started.close()


def load(shard: ShardChannel) -> None:
    """Begin an empty dataset."""
    shard.begin("queries", "load", dataset(), slots=100, number=1)()


def test_a_killed_actor_is_lost_and_another_one_is_made(head: RayHead, shard: RayShard) -> None:
    """Ray does not start the actor again by itself, because it would be empty."""
    (actor,) = head.shards()
    os.kill(actor, signal.SIGSTOP)
    wait = shard.begin("queries", "pages_since", 0)
    os.kill(actor, signal.SIGKILL)
    with pytest.raises(ShardLost):
        wait()
    until(lambda: head.shards() == [])
    shard.restart()
    load(shard)
    assert shard.begin("queries", "pages_since", 0)() == {}
    assert len(head.shards()) == 1  # one that Ray started at the death would have been there before this one


def test_an_actor_that_does_not_reply_is_killed(
    head: RayHead, shard: RayShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It might do the call later, when nobody expects that any more."""
    monkeypatch.setattr(process, "CALL_S", 0.2)
    (actor,) = head.shards()
    os.kill(actor, signal.SIGSTOP)
    with pytest.raises(ShardLost):
        shard.begin("queries", "pages_since", 0)()
    until(lambda: head.shards() == [])


def test_a_message_that_cannot_be_read_loses_the_shard_at_once(
    shard: RayShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shard makes objects of known classes only, though Ray's own pickle would make any."""
    monkeypatch.setattr(process, "CALL_S", 3600.0)
    with pytest.raises(ShardLost):
        shard.begin("accounts", "rows_held", socket.socket)()


def test_nothing_listens_beyond_loopback_and_an_actor_ends_with_its_coordinator(head: RayHead, shard: RayShard) -> None:
    """This holds for all processes of the cluster and for the relay, whose only secret is the token."""
    assert shard.pid is not None
    found = listening([*head.processes(), shard.pid])
    assert found
    assert found <= LOOPBACK
    folder = Path(f"/proc/{shard.pid}")
    environ = (folder / "environ").read_bytes()
    assert b"hidden" not in environ + (folder / "cmdline").read_bytes()
    assert b"RAY_USAGE_STATS_ENABLED=0" in environ.split(b"\0")
    shard._ends["queries"].connection.shutdown(socket.SHUT_RDWR)
    until(lambda: head.shards() == [])


def test_batches_on_ray_are_those_of_one_shard(head: RayHead) -> None:
    """They are the same even after a shard was killed and loaded again."""

    def kill(_: object) -> None:
        os.kill(head.shards()[0], signal.SIGKILL)

    check_batches(lambda record: RayShards(head.address).open(record, 2), count=times(3, 8), kill=kill)


def test_a_cluster_of_another_version_is_refused(
    head: RayHead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused at the start. A node that comes later is refused when an actor is made on it."""
    folder = tmp_path / "sparing-9.9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: sparing\nVersion: 9.9.9\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(
        ShardsUnusable, match=r"^the Ray node 127\.0\.0\.1 has sparing 0.*, and this process sparing 9\.9\.9"
    ):
        RayShards(head.address)
    shard = RayShard(dataset(), PLACE, head.address)
    with pytest.raises(ShardLost):
        load(shard)
    shard.close()


def test_a_cluster_with_another_token_or_none_is_refused(head: RayHead, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal is one line that shows no token."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "f" * 64)
    with pytest.raises(
        ShardsUnusable, match=r"^no Ray cluster answers at SPARING_RAY_ADDRESS 127\.0\.0\.1:\d+, .*token[^\n]*$"
    ):
        RayShards(head.address)


@pytest.mark.parametrize(
    ("address", "environ", "refused"),
    [
        ("127.0.0.1:6379", {}, "needs a token"),
        ("127.0.0.1:6379", {"RAY_AUTH_MODE": "token"}, "needs a token"),
        ("127.0.0.1:6379", TOKEN | {"RAY_AUTH_MODE": "disabled"}, "needs a token"),
        ("10.0.0.1:6379", {"RAY_USE_TLS": "1"}, "needs a token"),
        ("10.0.0.1:6379", TOKEN, "is beyond this machine and needs TLS"),
        ("127.0.0.2:6379", TOKEN, "is beyond this machine and needs TLS"),
        ("10.0.0.1:6379", TOKEN | {"RAY_USE_TLS": "1", "RAY_TLS_CA_CERT": "/missing"}, "needs TLS"),
    ],
)
def test_a_cluster_that_others_could_use_is_refused(address: str, environ: Mapping[str, str], refused: str) -> None:
    """The cluster's ports run code for everybody who reaches them."""
    with pytest.raises(ShardsUnusable, match=refused):
        check_secrecy(address, {"HOME": "/missing", **environ})


@pytest.mark.parametrize("token", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "HOME"])
def test_a_token_may_be_where_ray_looks_for_it(token: str, tmp_path: Path) -> None:
    """It may be in a variable, a file or the home. Certificates are files."""
    (tmp_path / ".ray").mkdir()
    file = tmp_path / ".ray" / "auth_token"
    file.write_text("secret", encoding="ascii")
    environ = {
        "RAY_AUTH_MODE": "token",
        token: {"RAY_AUTH_TOKEN": "secret", "HOME": str(tmp_path)}.get(token, str(file)),
    }
    check_secrecy("localhost:6379", environ)
    tls = dict.fromkeys(["RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"], str(file))
    check_secrecy("10.0.0.1:6379", environ | tls | {"RAY_USE_TLS": "1"})


def test_ray_is_held_to_loopback_where_its_address_is() -> None:
    """At any other address Ray has to use the machine's address."""
    name = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    assert ray_environment("127.0.0.1:6379", {"PATH": "/bin", "RAY_AUTH_MODE": "token"})[name] == "0"
    assert name not in ray_environment("10.0.0.1:6379", {})
    assert "PATH" not in ray_environment("10.0.0.1:6379", {"PATH": "/bin"})
