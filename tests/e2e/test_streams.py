"""Streams of the ledger's events on a real service of two workers: each ends with its principal."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import httpx
import pytest

from tests.e2e.homes import Homes
from tests.e2e.http_calls import DATASET, NO_TLS
from tests.e2e.surveys import Survey, in_a_second, surveyed
from tests.waiting import PATIENCE_S, until

OWN = {"X-Sparing-Request": "1"}


@pytest.fixture(scope="module")
def survey(homes: Homes) -> Iterator[Survey]:
    """Two workers."""
    with surveyed(homes.surveyed()) as opened:
        yield opened


class Stream(threading.Thread):
    """Reads a stream to its end, in a thread of its own."""

    def __init__(self, browser: httpx.Client, dataset: str = "survey") -> None:
        super().__init__()
        self._browser, self._path = browser, f"/v1/datasets/{dataset}/events"
        self.sequences: list[int] = []

    def run(self) -> None:
        with self._browser.stream("GET", self._path, timeout=PATIENCE_S) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    self.sequences.append(json.loads(line[6:])["sequence"])


class Watcher:
    """A curator of the survey with a stream, by its key or by a cookie."""

    def __init__(self, survey: Survey, name: str, *, by_cookie: bool = False) -> None:
        wish = {"role": "curator", "name": name, "dataset": "survey"}
        with survey.curator() as curator:
            made = curator.post("/v1/principals", json=wish).json()
        self.path = f"/v1/principals/{made['id']}"
        self.browser = httpx.Client(base_url=survey.served.url, verify=NO_TLS, headers=OWN)
        key = {"Authorization": f"Bearer {made['key']}"}
        if by_cookie:
            assert self.browser.post("/v1/session", headers=key).status_code == 201
        else:
            self.browser.headers.update(key)
        self.stream = Stream(self.browser)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The stream is read during the block, and has ended after it."""
        with closing(self.browser):
            self.stream.start()
            try:
                yield
            finally:
                self.stream.join(timeout=PATIENCE_S)


def test_a_stream_ends_with_its_principal_before_the_next_event(survey: Survey) -> None:
    """By key and by cookie: the key revoked, replaced, expired, the session signed out; another goes on."""
    with survey.curator() as curator, survey.analyst() as analyst, ExitStack() as watched:
        revoked, replaced, expired = (Watcher(survey, name) for name in ("revoked", "replaced", "expired"))
        signed_out = Watcher(survey, "signed out", by_cookie=True)
        without_key = Watcher(survey, "without a key", by_cookie=True)
        staying = Watcher(survey, "staying")
        ending = [revoked, replaced, expired, signed_out, without_key]
        for each in [*ending, staying]:
            watched.enter_context(each.watching())
        until(lambda: all(each.stream.sequences == [0] for each in [*ending, staying]))
        survey.ask(analyst, "first").raise_for_status()
        until(lambda: all(each.stream.sequences == [0, 1] for each in [*ending, staying]))

        curator.delete(revoked.path).raise_for_status()
        curator.delete(without_key.path).raise_for_status()
        curator.post(f"{replaced.path}/key").raise_for_status()
        curator.patch(expired.path, json={"expires_at": in_a_second()}).raise_for_status()
        signed_out.browser.delete("/v1/session").raise_for_status()
        until(lambda: expired.browser.get(survey.path).status_code == 401)
        survey.ask(analyst, "second").raise_for_status()
        until(lambda: staying.stream.sequences == [0, 1, 2])
        until(lambda: not any(each.stream.is_alive() for each in ending))
        assert staying.stream.is_alive()
        curator.delete(staying.path).raise_for_status()
        survey.ask(analyst, "third").raise_for_status()
    assert [each.stream.sequences for each in ending] == [[0, 1]] * len(ending)
    assert staying.stream.sequences == [0, 1, 2]


def test_a_stream_ends_with_its_dataset(survey: Survey) -> None:
    """One that is deleted has nothing more to tell, and nothing fails."""
    with survey.curator() as curator:
        curator.post("/v1/datasets", json={**DATASET, "name": "empty"}).raise_for_status()
        stream = Stream(curator, "empty")
        stream.start()
        until(lambda: stream.sequences == [0])
        curator.delete("/v1/datasets/empty").raise_for_status()
        stream.join(timeout=PATIENCE_S)
        assert not stream.is_alive()
