"""Queries, for analysts: ask, preview, fetch again."""

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
    """`client.queries`."""

    def __init__(self, sender: AsyncSender) -> None:
        """Send through `sender`."""
        self._sender = sender

    async def ask(self, *, idempotency_key: str | None = None, **question: Unpack[QueryRequest]) -> Answer:
        """Ask a query and wait for its answer.

        The key is made before anything is sent, and every try carries it, so that a lost answer is fetched and not
        charged again. When all tries fail, the exception carries the key: ask the same with
        `idempotency_key=error.idempotency_key`.

        Args:
            idempotency_key: 1 to 128 printable ASCII characters naming this query for ever; by default a fresh one.
            query: `dataset`; `select` (`count()`, `sum_("spend")`, `histogram("item")`, or a list of them); `where`
                (`col("age") >= 40`); `from_` (an event table); `group_by`; `l2_clip` (a bound on one individual's
                part); exactly one of `sigma`, `rho`, `share` and `half_width` with `confidence`, where lists have a
                number for each item, and `weights` divide `rho` or `share` among them; `reduce`; `rule`; `reuse`.

        Raises:
            InvalidRequestError: the service does not accept the query; `errors` name the fields.
            APIStatusError: 403 with slug `allowance-exceeded` when the analyst's worst-case allowance is used up.
            ValueError: not exactly one kind of noise is given.
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
        """Ask many queries of one dataset: an answer or a refusal for each, in order, as requests come back.

        The queries of one request share their time slots and a commit. A request is sent again where that is safe.

        Args:
            questions: dictionaries of the arguments of `ask`, and queries written step by step or in SQL, such as
                `client.dataset("shop").sql(text).noise(sigma=20)`; all of one dataset.
            idempotency_keys: one for each query, for callers that keep them before anything is sent; asking again
                with them charges nothing twice. By default fresh ones, which answers and refusals carry.
            batch_size: the number of queries in one request, at most 256.
            progress: called with the number of queries that came back and the number of all, after each request; or
                True, for a bar on standard error.

        Raises:
            ValueError: the datasets differ, the keys are not one for each query, or a query has not exactly one noise.
            SparingError: a request as a whole failed.
        """
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
