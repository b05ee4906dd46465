"""The bound on stored parameters: each analyst may store a number of bytes in each dataset, as they are kept for good.

A query with new parameters may cost every individual nearly nothing, and the allowance does not count what the query
stores. The bytes that are stored are counted in the database, so that a start forgets none. Those of queries under way
are counted here. Both counts depend on the analyst's own requests alone. A query without new parameters is admitted
without a look at the database.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from uuid import UUID

from service.ledger.model.errors import TooManyParametersKept
from service.ledger.model.parameters import bytes_kept
from service.ledger.model.rows import DatasetRecord
from service.query.parameters_ast import SentNumbers
from service.reads.ledger import snapshot
from service.writer.rollback.guard import RollbackGuard
from service.writer.submission import QueryRequest


class ParameterStorage:
    """Admits queries by the bytes of the parameters that they would add. Thread-safe."""

    def __init__(self, guard_of: Callable[[DatasetRecord], RollbackGuard], bytes_max: int) -> None:
        self._guard_of, self._bytes_max = guard_of, bytes_max
        self._under_way: Counter[tuple[int, UUID]] = Counter()
        self._lock = threading.Lock()

    def admit(self, request: QueryRequest, record: DatasetRecord) -> None:
        """Count the query's new parameters until the query has ended and the database counts them.

        Raises TooManyParametersKept, and Unavailable or Fenced where the database cannot be read.
        """
        given = request.plan.parameters
        new = {each.sha256: bytes_kept(each.numbers) for each in given if isinstance(each.source, SentNumbers)}
        if not new:
            return
        owner = record.id, request.analyst.id
        size = sum(new.values())
        with self._lock:
            before = self._under_way[owner]
            self._under_way[owner] += size
        try:
            self._refuse(request.analyst.id, record, new, before)
        except BaseException:
            self._ended(owner, size, request)
            raise
        request.add_done_callback(partial(self._ended, owner, size))

    def _refuse(self, analyst_id: UUID, record: DatasetRecord, new: Mapping[str, int], under_way: int) -> None:
        """Raise TooManyParametersKept beyond the bound. A query that ended after `under_way` was read counts twice."""
        with snapshot(self._guard_of(record)) as transaction:
            stored, known = transaction.parameters_stored(analyst_id, list(new))
        added = sum(size for sha256, size in new.items() if sha256 not in known)
        if added and stored + under_way + added > self._bytes_max:
            raise TooManyParametersKept(self._bytes_max)

    def _ended(self, owner: tuple[int, UUID], size: int, _: object) -> None:
        with self._lock:
            self._under_way[owner] -= size
            if self._under_way[owner] == 0:
                del self._under_way[owner]
