"""Uploads under an idempotency key: stored once, whatever is sent again and however."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from typing import Any, BinaryIO
from uuid import UUID

import pytest

from service.engine.ingest import FileForm, Rows
from service.ledger.model.errors import InvalidRequest, KeyConflict, NotFound
from service.ledger.model.journal import UploadOutcome, UploadRequest
from service.ledger.ports.row_reader import ReaderHere, ReadRequest
from service.workflows.replica import Replica, ReplicaOptions
from tests.factories import TWO_PEOPLE, open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import fill, findings, surveyed

CURATOR, COLLEAGUE = UUID(int=1), UUID(int=2)
ROWS = b"person_id,item\nann,1\nann,2\n"


def send(
    replica: Replica,
    rows: bytes = ROWS,
    *,
    key: str | None = "k",
    principal: UUID = CURATOR,
    dataset: str = "survey",
    **options: Any,
) -> UploadOutcome:
    """One upload of visits under a key."""
    given: dict[str, Any] = {"table": "visits", "content_type": "text/csv"} | options
    request = UploadRequest(address=None if key is None else (principal, key), **given)
    return replica.curators.upload(dataset, request, BytesIO(rows))


def stored(replica: Replica) -> int:
    """The number of stored visits."""
    return replica.curators.dataset("survey").rows["visits"]


@contextmanager
def asked_once(store: MemoryStore | None = None) -> Iterator[Replica]:
    """A dataset with one individual, to which the rows were sent under the key."""
    with surveyed(store, TWO_PEOPLE[:1]) as replica:
        send(replica)
        yield replica


def test_the_same_upload_again_gives_the_same_report_and_stores_nothing() -> None:
    """Any number of times, also at a replica that did not store it; without a key each is stored."""
    store = MemoryStore()
    with surveyed(store, TWO_PEOPLE[:1]) as replica:
        first = send(replica)
        again = send(replica)
        assert (first.is_repeat, again.is_repeat) == (False, True)
        assert again.report == first.report
        acts = len(replica.curators.acts("survey", cursor=None, limit=10).items)
    with open_replica(store) as other:
        assert send(other) == again
        assert stored(other) == 2
        assert len(other.curators.acts("survey", cursor=None, limit=10).items) == acts
        send(other, key=None)
        assert stored(other) == 4
    assert findings(store) == []


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (b"person_id,item\nann,1\nann,3\n", {}),
        (b"not a row at all", {}),
        (ROWS, {"table": "people"}),
        (ROWS, {"content_type": "application/x-ndjson"}),
        (ROWS, {"form": FileForm(delimiter=";")}),
        (ROWS, {"form": FileForm(columns={"person_id": "person_id"})}),
        (ROWS, {"rows_over_limit": "truncate"}),
        (ROWS, {"unknown_individuals": "drop"}),
        (ROWS, {"duplicates": "drop"}),
    ],
)
def test_a_key_belongs_to_one_upload(rows: bytes, options: dict[str, Any]) -> None:
    """Other bytes, another table, another format and another option are refused, and nothing is stored."""
    with asked_once() as replica:
        with pytest.raises(KeyConflict):
            send(replica, rows, **options)
        assert stored(replica) == 2


def test_keys_are_those_of_one_principal_and_one_dataset() -> None:
    """A colleague's key of the same text names another upload."""
    with asked_once() as replica:
        assert not send(replica, principal=COLLEAGUE).is_repeat
        assert stored(replica) == 4
        register(replica, "other")
        with pytest.raises(InvalidRequest, match="no such individual"):
            send(replica, dataset="other")


def test_a_refused_upload_takes_no_key() -> None:
    """The corrected rows may come under the same key."""
    with surveyed(people=TWO_PEOPLE[:1]) as replica:
        with pytest.raises(InvalidRequest):
            send(replica, b"person_id,item\neve,1\n")
        with pytest.raises(NotFound):
            send(replica, table="pets")
        assert not send(replica).is_repeat


class ReaderTogether(ReaderHere):
    """Reads no upload before all have looked up their keys."""

    def __init__(self, uploads: int) -> None:
        self.together = threading.Barrier(uploads)

    def read(self, source: BinaryIO, request: ReadRequest) -> Rows:
        """Wait for the others, and read."""
        self.together.wait(timeout=PATIENCE_S)
        return super().read(source, request)


def test_requests_under_one_key_at_once_store_one_upload() -> None:
    """All of them get the same report, and one of them has stored it."""
    store = MemoryStore()
    fill(store, TWO_PEOPLE[:1])
    with open_replica(store, options=ReplicaOptions(reader=ReaderTogether(8))) as replica:
        with ThreadPoolExecutor(8) as threads:
            outcomes = list(threads.map(lambda _: send(replica), range(8)))
        assert sum(not outcome.is_repeat for outcome in outcomes) == 1
        assert len({outcome.report.rows for outcome in outcomes}) == 1
        assert stored(replica) == 2


def test_a_repeat_after_an_erasure_brings_nothing_back() -> None:
    """The key is spent: the report comes again, the rows do not."""
    with asked_once() as replica:
        replica.curators.erase_individual("survey", "ann")
        assert send(replica).is_repeat
        assert stored(replica) == 0


def test_the_record_of_an_upload_cannot_confirm_a_guessed_row() -> None:
    """The digest depends on the deployment's secret: equal uploads to two datasets have different digests."""
    store = MemoryStore()
    with asked_once(store) as replica:
        register(replica, "other")
        upload(replica, "people", TWO_PEOPLE[:1], "other")
        send(replica, dataset="other")
    digests = [upload.digest for kept in store.kept.values() for upload in kept.uploads.values()]
    assert len(set(digests)) == len(digests) == 2
