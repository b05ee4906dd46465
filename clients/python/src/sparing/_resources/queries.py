"""Queries, for analysts: ask, preview, fetch again."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Unpack

from sparing._answers import Answer
from sparing._constants import BATCH_SIZE, PAGE_SIZE
from sparing._decode import read
from sparing._errors import APIReplyError, APIStatusError, refusal_of
from sparing._models import Preview, ReleaseRow
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
        document = question_json(question)
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        where = path("datasets", question["dataset"], "queries")
        reply = self._sender.post(where, document, repeat=Repeat.KEYED, key=key)
        return dataclasses.replace(read(Answer, reply), idempotency_key=key)

    def preview(self, **question: Unpack[QueryRequest]) -> Preview:
        """Everything public about a query (error, worst-case cost, allowance left), free: no record is touched."""
        document = question_json(question)
        where = path("datasets", question["dataset"], "queries", "preview")
        return read(Preview, self._sender.post(where, document, repeat=Repeat.READ))

    def batch(
        self,
        questions: Iterable[QueryRequest],
        *,
        idempotency_keys: Sequence[str] | None = None,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[Answer | APIStatusError]:
        """Ask many queries of one dataset: an answer or a refusal for each, in order, as requests come back.

        The queries of one request share their time slots and a commit. A request is sent again where that is safe.

        Args:
            questions: dictionaries of the arguments of `ask`, all with the same `dataset`.
            idempotency_keys: one for each query, for callers that keep them before anything is sent; asking again
                with them charges nothing twice. By default fresh ones, which answers and refusals carry.
            batch_size: the number of queries in one request, at most 256.
            progress: called with the number of queries that came back and the number of all, after each request.

        Raises:
            ValueError: the datasets differ, the keys are not one for each query, or a query has not exactly one noise.
            SparingError: a request as a whole failed.
        """
        asked = list(questions)
        documents = [question_json(question) for question in asked]
        keys = [str(uuid.uuid4()) for _ in asked] if idempotency_keys is None else list(idempotency_keys)
        if len(keys) != len(asked):
            raise ValueError(f"{len(asked)} queries need as many idempotency keys, not {len(keys)}")
        datasets = sorted({question["dataset"] for question in asked})
        if len(datasets) > 1:
            raise ValueError(f"a batch is of one dataset, not of {', '.join(datasets)}")
        where = path("datasets", *datasets, "queries", "batch")
        entries = [{"idempotency_key": key, "query": body} for key, body in zip(keys, documents, strict=True)]
        return self._in_batches(where, entries, min(max(batch_size, 1), BATCH_SIZE), progress)

    def _in_batches(
        self,
        where: str,
        entries: Sequence[Mapping[str, object]],
        size: int,
        progress: Callable[[int, int], object] | None,
    ) -> Iterator[Answer | APIStatusError]:
        for start in range(0, len(entries), size):
            part = entries[start : start + size]
            outcomes = outcomes_of(self._sender.post(where, {"queries": part}, repeat=Repeat.KEYED), len(part))
            for entry, outcome in zip(part, outcomes, strict=True):
                key = str(entry["idempotency_key"])
                refusal = refusal_of(outcome)
                if refusal is None:
                    yield dataclasses.replace(read(Answer, outcome), idempotency_key=key)
                else:
                    refusal.idempotency_key = key
                    yield refusal
            if progress is not None:
                progress(start + len(part), len(entries))

    def get(self, *, query: str) -> Answer:
        """One of the analyst's own releases, as it was answered; `query` is the answer's id."""
        return read(Answer, self._sender.get(path("queries", query)))

    def list(self, *, page_size: int = PAGE_SIZE) -> Iterator[ReleaseRow]:
        """The analyst's own releases, newest first, fetched page by page as they are consumed."""
        return (read(ReleaseRow, item) for item in self._sender.pages(path("queries"), limit=page_size))


def outcomes_of(reply: object, count: int) -> Sequence[object]:
    """The outcomes of a batch. Raises APIReplyError where they are not one for each query."""
    outcomes = reply.get("answers") if isinstance(reply, dict) else None
    if not isinstance(outcomes, list) or len(outcomes) != count:
        raise APIReplyError(f"the reply does not have an outcome for each of {count} queries")
    return outcomes
