"""Uploads under an idempotency key: stored once, whatever is sent again and however."""

import threading
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any, BinaryIO
from uuid import UUID

import pytest

from service.engine.ingest import Rows
from service.workflows.model.errors import InvalidRequest, KeyConflict, NotFound
from service.workflows.model.journal import UploadOutcome, UploadRequest
from service.workflows.ports.row_reader import ReaderHere, ReadRequest
from service.workflows.replica import Replica
from tests.factories import open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.workflows.surveys import findings

CURATOR, COLLEAGUE = UUID(int=1), UUID(int=2)
ROWS = b"person_id,item\nann,1\nann,2\n"


def send(
    replica: Replica,
    rows: bytes = ROWS,
    *,
    key: str | None = "k",
    table: str = "visits",
    principal: UUID = CURATOR,
    content_type: str = "text/csv",
) -> UploadOutcome:
    """One upload under a key."""
    address = None if key is None else (principal, key)
    request = UploadRequest(table=table, content_type=content_type, address=address)
    return replica.curators.upload("survey", request, BytesIO(rows))


def stored(replica: Replica) -> int:
    """The number of stored visits."""
    return replica.curators.dataset("survey").rows["visits"]


def begin(replica: Replica) -> None:
    """A dataset with one individual."""
    register(replica)
    upload(replica, "people", [("ann", "NO", 44, 1)])


def test_the_same_upload_again_gives_the_same_report_and_stores_nothing() -> None:
    """Any number of times, also at a replica that did not store it; without a key each is stored."""
    store = MemoryStore()
    with open_replica(store) as replica:
        begin(replica)
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
    ("rows", "table", "content_type"),
    [
        (b"person_id,item\nann,1\nann,3\n", "visits", "text/csv"),
        (b"not a row at all", "visits", "text/csv"),
        (ROWS, "people", "text/csv"),
        (ROWS, "visits", "application/x-ndjson"),
    ],
)
def test_a_key_belongs_to_one_upload(rows: bytes, table: str, content_type: str) -> None:
    """Other bytes, another table and another format are refused, and nothing is stored."""
    with open_replica() as replica:
        begin(replica)
        send(replica)
        with pytest.raises(KeyConflict):
            send(replica, rows, table=table, content_type=content_type)
        assert stored(replica) == 2


@pytest.mark.parametrize(
    "options",
    [{"delimiter": ";"}, {"rows_over_limit": "truncate"}, {"unknown_individuals": "drop"}, {"duplicates": "drop"}],
)
def test_options_are_part_of_the_upload(options: dict[str, Any]) -> None:
    """The same bytes with another option are another upload."""
    with open_replica() as replica:
        begin(replica)
        send(replica)
        request = UploadRequest(table="visits", content_type="text/csv", address=(CURATOR, "k"), **options)
        with pytest.raises(KeyConflict):
            replica.curators.upload("survey", request, BytesIO(ROWS))


def test_keys_are_those_of_one_principal_and_one_dataset() -> None:
    """A colleague's key of the same text names another upload."""
    with open_replica() as replica:
        begin(replica)
        send(replica)
        assert not send(replica, principal=COLLEAGUE).is_repeat
        assert stored(replica) == 4
        register(replica, "other")
        with pytest.raises(InvalidRequest, match="no such individual"):
            replica.curators.upload(
                "other", UploadRequest(table="visits", content_type="text/csv", address=(CURATOR, "k")), BytesIO(ROWS)
            )


def test_a_refused_upload_takes_no_key() -> None:
    """The corrected rows may come under the same key."""
    with open_replica() as replica:
        begin(replica)
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
        self.together.wait(timeout=60)
        return super().read(source, request)


def test_requests_under_one_key_at_once_store_one_upload() -> None:
    """All of them get the same report, and one of them has stored it."""
    with open_replica() as replica:
        begin(replica)
        replica.curators.reader = ReaderTogether(8)
        with ThreadPoolExecutor(8) as threads:
            outcomes = list(threads.map(lambda _: send(replica), range(8)))
        assert sum(not outcome.is_repeat for outcome in outcomes) == 1
        assert len({outcome.report.rows for outcome in outcomes}) == 1
        assert stored(replica) == 2


def test_a_repeat_after_an_erasure_brings_nothing_back() -> None:
    """The key is spent: the report comes again, the rows do not."""
    with open_replica() as replica:
        begin(replica)
        send(replica)
        replica.curators.erase_individual("survey", "ann")
        assert send(replica).is_repeat
        assert stored(replica) == 0


def test_the_record_of_an_upload_cannot_confirm_a_guessed_row() -> None:
    """The digest depends on the deployment's secret: equal uploads to two datasets have different digests."""
    store = MemoryStore()
    with open_replica(store) as replica:
        begin(replica)
        send(replica)
        register(replica, "other")
        upload(replica, "people", [("ann", "NO", 44, 1)], "other")
        request = UploadRequest(table="visits", content_type="text/csv", address=(CURATOR, "k"))
        replica.curators.upload("other", request, BytesIO(ROWS))
    digests = [upload.digest for kept in store.kept.values() for upload in kept.uploads.values()]
    assert len(set(digests)) == len(digests) == 2
