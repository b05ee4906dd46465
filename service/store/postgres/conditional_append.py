"""The conditional append on Postgres: one statement that commits by itself, for a batch of any size."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg.errors import UniqueViolation

from service.store.postgres.append import LedgerAppend
from service.store.postgres.connection import Session
from service.store.postgres.errors import committing
from service.store.postgres.sealing import LedgerSeal
from service.workflows.model.ledger_entry import LedgerEntry
from service.workflows.model.rows import AnswerRecord, Asked, Head, Known
from service.workflows.ports.store import HeadMoved


class PostgresConditionalAppend:
    """The port's ConditionalAppend. Nothing is sent before `commit`."""

    def __init__(
        self, session: Session, dataset_id: int, head: Head, seal: LedgerSeal, *, asked: Sequence[Asked]
    ) -> None:
        self._session, self._dataset_id, self._seal, self._asked = session, dataset_id, seal, asked
        self._extension: LedgerAppend | None = None
        self.head, self.known = head, Known(answers={}, reusable={}, worst_cases={})

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        replied = {(each.principal_id, each.key) for each in answers}
        if not replied.issuperset(each.address for each in self._asked):
            return  # the table of replies refuses a key that is taken; of one that gets no reply it says nothing
        self._extension = LedgerAppend(
            dataset_id=self._dataset_id,
            assumed=self.head,
            seal=self._seal,
            entries=entries,
            answers=answers,
            worst_cases=worst_cases,
            new_hashes=[each.query_hash for each in self._asked if each.query_hash is not None],
        )
        self.head = self._extension.head

    def commit(self) -> None:
        with committing():
            try:
                is_done = self._extension is not None and self._session.extend(self._extension)
            except UniqueViolation as refusal:  # a key is taken: the long way finds its reply
                raise HeadMoved from refusal
        if not is_done:
            raise HeadMoved
