"""Queries, for analysts: ask, preview, fetch again."""

import dataclasses
import uuid
from collections.abc import Iterator
from typing import Unpack

from sparing._constants import PAGE_SIZE
from sparing._decode import read
from sparing._models import Answer, Preview, ReleaseRow
from sparing._query import QueryRequest, question_json
from sparing._retry import Repeat
from sparing._sender import Sender, path

__all__ = ["Queries"]


class Queries:
    """`client.queries`."""

    def __init__(self, sender: Sender) -> None:
        """Send through `sender`."""
        self._sender = sender

    def ask(self, *, idempotency_key: str | None = None, **question: Unpack[QueryRequest]) -> Answer:
        """Ask a query and wait for its answer.

        The key is made before anything is sent, and every try carries it, so that a lost answer is fetched and not
        charged again. When all tries fail, the exception carries the key: ask the same with
        `idempotency_key=error.idempotency_key`.

        Args:
            idempotency_key: 1 to 128 printable ASCII characters naming this query for ever; by default a fresh one.
            query: `dataset`; `select` (`count()`, `sum_("spend")`, `histogram("item")`, or a list of them); `where`
                (`col("age") >= 40`); `from_` (an event table); `group_by`; `l2_clip` (a bound on one individual's
                part); exactly one of `sigma`, `rho` and `half_width` with `confidence`; `rule`; `reuse`.

        Raises:
            InvalidRequestError: the service does not accept the query; `errors` name the fields.
            APIStatusError: 403 with slug `allowance-exceeded` when the analyst's worst-case allowance is used up.
            ValueError: not exactly one kind of noise is given.
        """
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        where = path("datasets", question["dataset"], "queries")
        reply = self._sender.post(where, question_json(question), repeat=Repeat.KEYED, key=key)
        return dataclasses.replace(read(Answer, reply), idempotency_key=key)

    def preview(self, **question: Unpack[QueryRequest]) -> Preview:
        """Everything public about a query (error, worst-case cost, allowance left), free: no record is touched."""
        where = path("datasets", question["dataset"], "queries", "preview")
        return read(Preview, self._sender.post(where, question_json(question), repeat=Repeat.READ))

    def get(self, *, query: str) -> Answer:
        """One of the analyst's own releases, as it was answered; `query` is the answer's id."""
        return read(Answer, self._sender.get(path("queries", query)))

    def list(self, *, page_size: int = PAGE_SIZE) -> Iterator[ReleaseRow]:
        """The analyst's own releases, newest first, fetched page by page as they are consumed."""
        return (read(ReleaseRow, item) for item in self._sender.pages(path("queries"), limit=page_size))
