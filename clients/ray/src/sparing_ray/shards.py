"""Shards on Ray: each in an actor of a running cluster, behind a process of the service that passes messages on."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.shards import ShardBackend, ShardChannel, ShardsUnusable
from service.query.division import ShardPlace
from service.store.shards.process import ProcessShard, plain_environment

CONNECT_S: Final = 5.0
CHECK_S: Final = 120.0
"""The longest time in s that the check of a cluster may take."""
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""The addresses accepted as loopback. For any other of the loopback network, Ray would listen on the whole machine."""
_TLS: Final = ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
_TRIES: Final = 3
"""The tries to reach a cluster, of a second each. Ray's default is twenty, even when a token is wrong."""
_OURS: Final = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_NUM_REDIS_GET_RETRIES": str(_TRIES),
    "RAY_USAGE_STATS_ENABLED": "0",
}
_HOLD_TO_LOOPBACK: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Without this variable Ray takes the machine's own address even if it is given 127.0.0.1."""
_PROGRAM: Final = """
import json, runpy, sys
sys.path[:] = json.loads(sys.argv.pop(1))
runpy.run_module("sparing_ray.relay", run_name="__main__")
"""


class RayShard(ProcessShard):
    """The channel to a shard on Ray, through a process on this machine that owns the shard."""

    program = "sparing_ray.relay"

    def __init__(self, record: DatasetRecord, place: ShardPlace, address: str) -> None:
        """Keep the address; nothing is started yet."""
        super().__init__(record, place)
        self._address = address

    def _start(self) -> None:
        """Start the shard if the cluster answers at once. Ray itself would try for a minute, and queries would wait."""
        _connect(self._address)
        super()._start()

    def environment(self) -> dict[str, str]:
        return plain_environment() | ray_environment(self._address, os.environ)

    def told(self) -> object:
        return self._address, self._record, (self._place.number, self._place.count)


class RayShards(ShardBackend):
    """Opens the shards of datasets on Ray."""

    backend = "ray"

    def __init__(self, address: str) -> None:
        """Check the cluster at an address, host:port. Raises ShardsUnusable with the reason in one line."""
        self._address = address
        if importlib.util.find_spec("ray") is None:
            raise ShardsUnusable("SPARING_RAY_ADDRESS needs Ray: pip install sparing[ray]")
        check_secrecy(address, os.environ)
        self._check_cluster()

    def open(self, record: DatasetRecord, count: int) -> list[ShardChannel]:
        return [RayShard(record, ShardPlace(number, count), self._address) for number in range(count)]

    def _check_cluster(self) -> None:
        try:
            _connect(self._address)
        except OSError as error:  # Ray would try for minutes
            raise ShardsUnusable(
                f"no Ray cluster answers at SPARING_RAY_ADDRESS {self._address}: {error.strerror or 'no reply'}"
            ) from None
        where = "loopback" if _is_on_loopback(self._address) else "beyond"
        command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path), self._address, where]
        environment = plain_environment() | ray_environment(self._address, os.environ)
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, cwd="/", timeout=CHECK_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ShardsUnusable(
                f"the Ray cluster at SPARING_RAY_ADDRESS {self._address} does not answer within {CHECK_S:.0f} s"
            ) from None
        if done.returncode != 0:
            raise ShardsUnusable(f"the Ray cluster at SPARING_RAY_ADDRESS {self._address} cannot be joined")
        if refusal := done.stdout.rpartition("\n")[2]:
            raise ShardsUnusable(refusal)


def ray_environment(address: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for a process that joins the cluster: those of Ray, and `HOME` for its token."""
    kept = {name: text for name, text in environ.items() if name.startswith("RAY_") or name == "HOME"}
    return kept | _OURS | (_HOLD_TO_LOOPBACK if _is_on_loopback(address) else {})


def check_secrecy(address: str, environ: Mapping[str, str]) -> None:
    """Refuse a cluster that others could use to run code, because it has no token, or no TLS beyond this machine."""
    files = [environ.get("RAY_AUTH_TOKEN_PATH"), str(Path(environ.get("HOME", "/")) / ".ray" / "auth_token")]
    has_token = bool(environ.get("RAY_AUTH_TOKEN")) or any(path and Path(path).is_file() for path in files)
    if environ.get("RAY_AUTH_MODE") != "token" or not has_token:
        raise ShardsUnusable(
            "SPARING_RAY_ADDRESS needs a token: RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH or RAY_AUTH_TOKEN"
        )
    has_tls = environ.get("RAY_USE_TLS") == "1" and all(Path(environ.get(name) or "/").is_file() for name in _TLS)
    if not _is_on_loopback(address) and not has_tls:
        raise ShardsUnusable(
            f"SPARING_RAY_ADDRESS {address} is beyond this machine and needs TLS: "
            f"RAY_USE_TLS=1, and files in {', '.join(_TLS)}"
        )


def _connect(address: str) -> None:
    """Connect to a cluster, and close the connection. Raises OSError."""
    parts = urlsplit(f"//{address}")
    socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_S).close()


def _is_on_loopback(address: str) -> bool:
    return urlsplit(f"//{address}").hostname in LOOPBACK
