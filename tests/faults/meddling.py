"""A Valkey of a test's own, and everything that can be done to it: killed, flushed, set back, forged, slowed down."""

import random
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path

import redis

from service.embedded.binaries import choose_valkey, valkey_candidates
from tests.waiting import until

FORGERIES = ("noise", "short", "turned", "swapped", "list", "number")
"""The forgeries that the values become, in turn."""
KEPT_SNAPSHOTS = 4
"""The times that it is set back to one snapshot, before another one is kept."""


class OwnValkey:
    """A server behind a relay that may be slow. Killed, it comes back empty at the same address."""

    def __init__(self, folder: Path, *, seed: int = 5) -> None:
        self._program = choose_valkey(valkey_candidates(None), None)
        self._behind, self.address = folder / "behind.sock", folder / "front.sock"
        self._random = random.Random(seed)
        self._process: subprocess.Popen[bytes] | None = None
        self._snapshot: dict[bytes, bytes] = {}
        self._forgeries, self._delays, self._set_backs = cycle(FORGERIES), cycle([0.2, 0.0, 0.0]), 0
        self.delay_s = 0.0
        self.drips = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.address))
        self._listener.listen(64)
        threading.Thread(target=self._accept, name="relay", daemon=True).start()

    @property
    def url(self) -> str:
        """Through the relay."""
        return f"unix://{self.address}"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        options = ["--port", "0", "--unixsocket", str(self._behind), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([str(self._program), *options, "--logfile", "/dev/null"])
        until(self._answers)

    def _answers(self) -> bool:
        with suppress(redis.RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def stop(self) -> None:
        """SIGKILL, and no process is left."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """The end of both."""
        self.stop()
        self._listener.close()

    @contextmanager
    def client(self) -> Iterator["redis.Redis"]:
        """Another client of the same server, past the relay."""
        with redis.Redis(unix_socket_path=str(self._behind)) as client:
            yield client

    def values(self) -> dict[bytes, bytes]:
        """Everything that lies there."""
        with self.client() as client:
            names = [name for name in client.keys("*") if isinstance(name, bytes)]
            held = {name: client.get(name) for name in names if client.type(name) == b"string"}
        return {name: value for name, value in held.items() if isinstance(value, bytes)}

    # What can be done to it

    def kill(self) -> None:
        """Killed, and back at once with nothing in it."""
        self.stop()
        self.start()

    def flush(self) -> None:
        """Emptied."""
        with self.client() as client:
            client.flushall()

    def set_back(self) -> None:
        """Everything as it was some time ago; now and then a new snapshot is kept."""
        if not self._snapshot or self._set_backs % KEPT_SNAPSHOTS == 0:
            self._snapshot = self.values()
        self._set_backs += 1
        self._put(self._snapshot)

    def forge(self) -> None:
        """Every value replaced, shortened, exchanged with another's, or of another kind."""
        values = self.values()
        names = list(values)
        way = next(self._forgeries)
        if way == "list":
            with self.client() as client, client.pipeline() as transaction:
                for name in names:
                    transaction.delete(name)
                    transaction.rpush(name, b"x")
                transaction.execute()
            return
        turned = names[1:] + names[:1]
        shuffled = self._random.sample(names, len(names))
        forged: Mapping[str, Callable[[bytes, int], bytes]] = {
            "noise": lambda value, _: self._random.randbytes(len(value)),
            "short": lambda value, _: value[: len(value) // 2],
            "turned": lambda _, place: values[turned[place]],
            "swapped": lambda _, place: values[shuffled[place]],
            "number": lambda _, place: b"9" * 60 + b"%d" % place,
        }
        self._put({name: forged[way](value, place) for place, (name, value) in enumerate(values.items())})

    def slow_down(self) -> None:
        """Slower than anybody waits, or as fast as ever."""
        self.delay_s = next(self._delays)

    def drip(self) -> None:
        """Every reply comes byte by byte, each before anybody loses patience with silence."""
        self.drips = True

    def nothing(self) -> None:
        """Left alone."""

    def _put(self, values: Mapping[bytes, bytes]) -> None:
        with self.client() as client:
            for name, value in values.items():
                client.set(name, value, ex=600)

    # The relay

    def _accept(self) -> None:
        while True:
            try:
                front, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=[front], name="relayed", daemon=True).start()

    def _relay(self, front: socket.socket) -> None:
        back = socket.socket(socket.AF_UNIX)
        with front, back, suppress(OSError):
            back.connect(str(self._behind))
            while True:
                for source in select.select([front, back], [], [])[0]:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if self.delay_s and source is back:
                        time.sleep(self.delay_s)
                    if self.drips and source is back:
                        for byte in data:
                            front.sendall(bytes([byte]))
                            time.sleep(0.02)
                    else:
                        (back if source is front else front).sendall(data)
