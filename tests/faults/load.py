"""Load during faults: clients that never give up, and a curator that keeps reading."""

import threading
from collections.abc import Callable

from tests.faults.scenario import NAMES, Stage

CLIENTS = 3
RETRY_S = 0.02
LAST_ANSWER_S = 120


class Crowd:
    """Clients that ask on and on, repeating a key at the other replica until it is answered, and one that reads."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.urls: list[str] = []
        self._given_up = False
        self._stage, self._name = stage, name
        self._over, self._retry = threading.Event(), threading.Event()
        jobs: list[Callable[[], None]] = [lambda n=n: self._ask(n) for n in range(CLIENTS)]  # type: ignore[misc]
        self._threads = [threading.Thread(target=job) for job in (*jobs, self._read)]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Let every client have its last answer."""
        self._over.set()
        for thread in self._threads:
            thread.join(timeout=LAST_ANSWER_S)
            assert not thread.is_alive(), "a key is never answered"

    def abandon(self) -> None:
        """Let every client go without its answer: the test has failed."""
        self._given_up = True
        self.finish()

    def _ask(self, client: int) -> None:
        asked = 0
        while not self._over.is_set():
            key, attempt = f"{self._name}-{client}-{asked}", client + asked
            while (
                not self._given_up
                and self._stage.ask(self.urls[attempt % 2], key, NAMES[(client + asked) % len(NAMES)]).status != 200
            ):
                attempt += 1
                self._retry.wait(RETRY_S)
            asked += 1

    def _read(self) -> None:
        turn = 0
        while not self._over.wait(RETRY_S):
            self._stage.read(self.urls[turn % 2])
            turn += 1
