"""Queries, for analysts: ask, preview, fetch again."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Unpack

from sparing._answers import Answer
from sparing._constants import BATCH_SIZE, PAGE_SIZE
from sparing._documents import WrittenQuery
from sparing._errors import APIStatusError
from sparing._models import Preview, ReleaseRow
from sparing._progress import BatchProgress
from sparing._query import QueryRequest
from sparing._sender import Sender
from sparing._verbs import queries


class Queries:
    """`client.queries`."""

    def __init__(self, sender: Sender) -> None:
        """Send through `sender`."""
        self._sender = sender

    def ask(self, *, idempotency_key: str | None = None, **question: Unpack[QueryRequest]) -> Answer:
        """Ask a query and wait for its answer.

        The idempotency key is made before anything is sent, and every try carries it, so that a lost answer is fetched
        and not charged again. If all tries fail, the exception carries the key: ask the same query with
        `idempotency_key=error.idempotency_key`.

        Args:
            idempotency_key: 1 to 128 printable ASCII characters naming this query for ever; by default a fresh one.
            query: `dataset`; `select` (`count()`, `sum_("spend")`, `histogram("item")`, or a list of them); `where`
                (`col("age") >= 40`); `from_` (an event table); `group_by`; `l2_clip` (a bound on the norm of one
                individual's vector); the noise by exactly one of `sigma`, `rho`, `share`, `half_width` (with
                `confidence`) and `scale`, where `sigma` and `half_width` may be lists with a number for each item, and
                `weights` divide `rho` or `share` among the items; `reduce`; `rule`; `reuse`.

        Raises:
            InvalidRequestError: the service does not accept the query; `errors` name the fields.
            APIStatusError: 403 with slug `allowance-exceeded` when the analyst's worst-case allowance is used up.
            ValueError: not exactly one kind of noise is given.
        """
        return self._sender.run(queries.ask(question, idempotency_key))

    def preview(self, **question: Unpack[QueryRequest]) -> Preview:
        """Everything public about a query: error, worst-case cost, allowance left. It is free: no record is touched."""
        return self._sender.run(queries.preview(question))

    def batch(
        self,
        questions: Iterable[QueryRequest | WrittenQuery],
        *,
        idempotency_keys: Sequence[str] | None = None,
        batch_size: int = BATCH_SIZE,
        progress: BatchProgress | None = None,
    ) -> Iterator[Answer | APIStatusError]:
        """Ask many queries of one dataset, and return an answer or a refusal for each, in order, as they come back.

        The queries of one request share their time slots and one commit. A failed request is sent again if that is
        safe.

        Args:
            questions: dictionaries of the arguments of `ask`, and queries written step by step or in SQL, such as
                `client.dataset("shop").sql(text).noise(sigma=20)`; all of one dataset.
            idempotency_keys: a key for each query, for callers that keep keys before anything is sent; asking again
                with the same keys charges nothing twice. By default they are fresh, and answers and refusals carry
                them.
            batch_size: the number of queries in one request, at most 256.
            progress: called with the number of queries that came back and the number of all, after each request; or
                True, for a bar on standard error.

        Raises:
            ValueError: the datasets differ, the number of keys is not that of the queries, or a query has not exactly
                one kind of noise.
            SparingError: a request as a whole failed.
        """
        return self._sender.each(queries.batch(questions, idempotency_keys, batch_size, progress))

    def get(self, *, query: str) -> Answer:
        """One of the analyst's own answers, as it was released; `query` is the answer's id."""
        return self._sender.run(queries.fetch(query))

    def cancel(self, *, dataset: str, idempotency_key: str) -> None:
        """Cancel a query that waits for its slots, by the key it was asked with; nothing is charged.

        The key of any query of a batch cancels the whole batch. The request that waits for the answer fails with
        NotFoundError (410, `query-cancelled`). Raises ConflictError if no query waits under the key, such as when the
        query has begun: it is then answered and charged.
        """
        self._sender.run(queries.cancel(dataset, idempotency_key))

    def list(self, *, dataset: str | None = None, page_size: int = PAGE_SIZE) -> Iterator[ReleaseRow]:
        """The analyst's own releases, newest first, fetched page by page as they are consumed.

        `dataset` keeps the releases of one dataset; those of other datasets are fetched too, and left out.
        """
        return self._sender.each(queries.releases(page_size, dataset))
