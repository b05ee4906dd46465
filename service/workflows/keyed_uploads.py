"""Uploads under an idempotency key: the same key and bytes get the first report again, and nothing is stored twice.

The record of a key is committed with its rows. Long acts on a dataset run one after the other, and each looks up its
key after the one before has ended. A second request under a key therefore finds the record of the first, whether both
came at the same time or the reply to the first COMMIT was lost.
"""

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from pydantic import TypeAdapter

from service.query.canonical import canonical_json
from service.workflows.model.api_keys import Pepper
from service.workflows.model.errors import KeyConflict
from service.workflows.model.journal import UploadOutcome, UploadRecord, UploadRequest
from service.workflows.model.rows import Address, DatasetRecord
from service.workflows.model.views import UploadReport
from service.workflows.ports.transaction import LongAct, Transaction
from service.workflows.reads.ledger import snapshot
from service.workflows.uploads import placing, read_upload
from service.workflows.writer.committer import BaseVersion, Operation
from service.workflows.writer.operations import Preparation, Settled, act_beside
from service.workflows.writer.state import DatasetState
from service.workflows.writer.threads import WriterThread

_PIECE_BYTES: Final = 2**20
_REPORT: Final = TypeAdapter(UploadReport)


def store_upload(
    record: DatasetRecord, writer: WriterThread, pepper: Pepper, request: UploadRequest, source: BinaryIO
) -> UploadOutcome:
    """Read, check and store an upload, once for each key. Raises NotFound, InvalidRequest, KeyConflict."""
    if request.address is None or request.is_dry_run:
        rows = read_upload(record, request, source)
        return UploadOutcome(report=act_beside(writer, placing(record, request, rows, pepper)))
    digest = _digest(record, request, source, pepper)
    with snapshot(writer.guard) as transaction:
        stored = _stored(transaction, request.address, digest)
    if stored is not None:
        return stored
    rows = read_upload(record, request, source)
    return act_beside(writer, _once(request.address, digest, placing(record, request, rows, pepper)))


def _once(address: Address, digest: bytes, place: Preparation[UploadReport]) -> Preparation[UploadOutcome]:
    """The same act with the record of its key; settled where the key has one by now."""

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[UploadOutcome] | Settled[UploadOutcome]:
        stored = _stored(transaction, address, digest)
        if stored is not None:
            return Settled(result=stored)
        placed = place(transaction, base)
        if isinstance(placed, Settled):
            return Settled(result=UploadOutcome(report=placed.result))

        def act(transaction: Transaction, state: DatasetState) -> UploadOutcome:
            report = placed(transaction, state)
            transaction.keep_upload(UploadRecord(address=address, digest=digest, report=_REPORT.dump_json(report)))
            return UploadOutcome(report=report)

        return act

    return prepare


def _stored(transaction: Transaction, address: Address, digest: bytes) -> UploadOutcome | None:
    """The outcome stored under the key, if there is one. Raises KeyConflict where it is of another upload."""
    found = transaction.upload_at(address)
    if found is None:
        return None
    if found.digest != digest:
        raise KeyConflict
    return UploadOutcome(report=_REPORT.validate_json(found.report), is_repeat=True)


def _digest(record: DatasetRecord, request: UploadRequest, source: BinaryIO, pepper: Pepper) -> bytes:
    """The keyed digest of the table, the options and the bytes; `source` is rewound."""
    content = hashlib.sha256()
    for piece in _pieces(source):
        content.update(piece)
    source.seek(0)
    said = {"bytes": content.hexdigest(), **request.options()}
    return pepper.upload_digest(record.id, canonical_json(said))


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while piece := source.read(_PIECE_BYTES):
        yield piece
