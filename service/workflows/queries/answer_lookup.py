"""Answers that another replica has given, found in the cache without the dataset's writer.

Only a key of which notices has told is looked for, so that a query under a new key never asks the cache. Looking is the
work of a few threads: the caller goes on at once. What is found counts only if the database, asked without a
lock, has the entry that it shows in this very chain, under the same fence; in every other case the writer answers, and
refuses, as if there were no cache.
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
    """A writer, as far as queries go."""

    @property
    def guard(self) -> RollbackGuard:
        """The guard of the dataset's transactions."""

    def submit(self, submission: Submission) -> None:
        """Let a submission wait for its turn."""


class AnswerLookup:
    """Looks for replies in the cache before a writer is asked. Thread-safe."""

    def __init__(self, cache: Cache, hints: Hints, threads: Executor | None = None) -> None:
        """Its own threads start when first needed."""
        self._cache, self._hints = cache, hints
        self._threads = threads or ThreadPoolExecutor(THREADS, thread_name_prefix="recalling")
        self._room = threading.BoundedSemaphore(LOOKING_MAX)

    def close(self) -> None:
        """Take no new submission. Looks under way end by themselves: the writer, asked late, refuses."""
        self._threads.shutdown(wait=False)

    def submit(self, submission: Submission, record: DatasetRecord, line: Answering) -> None:
        """Settle a submission of one query with a known answer, or leave it to the writer. Never waits itself."""
        (request,) = submission.requests
        if not self._hints or self._cache.hint(record.genesis, request.address) not in self._hints:
            line.submit(submission)
            return
        if not self._room.acquire(blocking=False):
            line.submit(submission)
            return
        try:
            self._threads.submit(self._answer, submission, record, line)
        except RuntimeError:  # closed meanwhile
            self._room.release()
            line.submit(submission)

    def _answer(self, submission: Submission, record: DatasetRecord, line: Answering) -> None:
        (request,) = submission.requests
        try:
            known = self._known(request, record, line.guard)
        except Exception:  # noqa: BLE001 - the writer will meet it again, and has the words for it
            known = None
        finally:
            self._room.release()
        if known is None:
            line.submit(submission)
        else:
            submission.settle([stored_answer(known.record)])

    def _known(self, request: QueryRequest, record: DatasetRecord, guard: RollbackGuard) -> SharedAnswer | None:
        """The reply, if it is this principal's, to this request, and its entry stands in the ledger."""
        shared = self._cache.answer(record.genesis, request.address)
        if shared is None or shared.record.request_hash != request.request_hash:
            return None
        if (shared.record.principal_id, shared.record.key) != request.address:
            return None
        with guard.transaction(lock=False) as transaction:
            head = transaction.head
            entry_hash = transaction.hashes([shared.record.seq]).get(shared.record.seq)
        return shared if head.fence == shared.fence and entry_hash == shared.entry_hash else None
