"""Queries, for analysts, awaited: ask, preview, fetch again."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Unpack

from sparing._answers import Answer
from sparing._async_sender import AsyncSender
from sparing._constants import BATCH_SIZE, PAGE_SIZE
from sparing._documents import WrittenQuery
from sparing._errors import APIStatusError
from sparing._models import Preview, ReleaseRow
from sparing._progress import BatchProgress
from sparing._query import QueryRequest
from sparing._verbs import queries


class AsyncQueries:
    """`client.queries` of an `AsyncClient`; arguments and exceptions are those of `Client`."""

    def __init__(self, sender: AsyncSender) -> None:
        """Send through `sender`."""
        self._sender = sender

    async def ask(self, *, idempotency_key: str | None = None, **question: Unpack[QueryRequest]) -> Answer:
        """Ask a query and wait for its answer.

        When all tries fail, the exception carries the key. A task that is cancelled may leave a charged query behind:
        ask the same with the same `idempotency_key`, which `before_sending` was told, to fetch its answer.
        """
        return await self._sender.run(queries.ask(question, idempotency_key))

    async def preview(self, **question: Unpack[QueryRequest]) -> Preview:
        """Everything public about a query (error, worst-case cost, allowance left), free: no record is touched."""
        return await self._sender.run(queries.preview(question))

    def batch(
        self,
        questions: Iterable[QueryRequest | WrittenQuery],
        *,
        idempotency_keys: Sequence[str] | None = None,
        batch_size: int = BATCH_SIZE,
        progress: BatchProgress | None = None,
    ) -> AsyncIterator[Answer | APIStatusError]:
        """Ask many queries of one dataset: an answer or a refusal for each, in order, as requests come back."""
        return self._sender.each(queries.batch(questions, idempotency_keys, batch_size, progress))

    async def get(self, *, query: str) -> Answer:
        """One of the analyst's own releases, as it was answered; `query` is the answer's id."""
        return await self._sender.run(queries.fetch(query))

    async def cancel(self, *, dataset: str, idempotency_key: str) -> None:
        """Cancel a query that waits for its slots, by the key it was asked with; nothing is charged.

        The queries of a batch are cancelled together, by the key of any of them. The request that waits for the answer
        fails with NotFoundError (410, `query-cancelled`). Raises ConflictError where no query waits under the key: one
        that has begun is answered and charged.
        """
        await self._sender.run(queries.cancel(dataset, idempotency_key))

    def list(self, *, dataset: str | None = None, page_size: int = PAGE_SIZE) -> AsyncIterator[ReleaseRow]:
        """The analyst's own releases, newest first, fetched page by page as they are consumed.

        With `dataset`, those of one dataset; the pages of all are fetched.
        """
        return self._sender.each(queries.releases(page_size, dataset))
