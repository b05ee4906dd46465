"""Answers that another replica has given, found in the cache without the dataset's writer.

Only keys for which a hint has arrived are looked up, so that a query under a new key never asks the cache. A few
threads do the lookups; the caller does not wait. A found answer counts only if the database, read without a lock, has
the entry that it shows, with the same hash and fence; in every other case the writer answers or refuses, as without a
cache.
"""

import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, Protocol

from service.workflows.model.rows import DatasetRecord
from service.workflows.ports.cache import Cache, SharedAnswer
from service.workflows.replication.exchange import Hints
from service.workflows.rollback.guard import RollbackGuard
from service.workflows.writer.batch import QueryRequest, stored_answer
from service.workflows.writer.submission import Submission

THREADS: Final = 4
LOOKING_MAX: Final = 64


class Answering(Protocol):
    """The part of a writer that answers queries."""

    @property
    def guard(self) -> RollbackGuard:
        """The guard of the dataset's transactions."""

    def submit(self, submission: Submission) -> None:
        """Queue a submission."""


class AnswerLookup:
    """Looks for answers in the cache before the writer is asked. Thread-safe."""

    def __init__(self, cache: Cache, hints: Hints, threads: Executor | None = None) -> None:
        """Without `threads`, threads of its own start when first needed."""
        self._cache, self._hints = cache, hints
        self._threads = threads or ThreadPoolExecutor(THREADS, thread_name_prefix="answer-lookup")
        self._room = threading.BoundedSemaphore(LOOKING_MAX)

    def close(self) -> None:
        """Leave new submissions to the writer. Lookups under way end by themselves; a closed writer refuses theirs."""
        self._threads.shutdown(wait=False)

    def submit(self, submission: Submission, record: DatasetRecord, writer: Answering) -> None:
        """Settle a submission of one query with a known answer, or leave it to the writer. Never waits itself."""
        (request,) = submission.requests
        if not self._hints or self._cache.hint(record.genesis, request.address) not in self._hints:
            writer.submit(submission)
            return
        if not self._room.acquire(blocking=False):
            writer.submit(submission)
            return
        try:
            self._threads.submit(self._answer, submission, record, writer)
        except RuntimeError:  # closed meanwhile
            self._room.release()
            writer.submit(submission)

    def _answer(self, submission: Submission, record: DatasetRecord, writer: Answering) -> None:
        (request,) = submission.requests
        try:
            known = self._known(request, record, writer.guard)
        except Exception:  # noqa: BLE001 - the writer meets the same error and reports it
            known = None
        finally:
            self._room.release()
        if known is None:
            writer.submit(submission)
        else:
            submission.settle([stored_answer(known.record)])

    def _known(self, request: QueryRequest, record: DatasetRecord, guard: RollbackGuard) -> SharedAnswer | None:
        """The answer, if it is this principal's, to this request, and its entry is in the ledger."""
        shared = self._cache.answer(record.genesis, request.address)
        if shared is None or shared.record.request_hash != request.request_hash:
            return None
        if (shared.record.principal_id, shared.record.key) != request.address:
            return None
        with guard.transaction(lock=False) as transaction:
            head = transaction.head
            entry_hash = transaction.hashes([shared.record.seq]).get(shared.record.seq)
        return shared if head.fence == shared.fence and entry_hash == shared.entry_hash else None
