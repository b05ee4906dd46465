"""Queries of which each depends on the answer before: asked by a client that waits, or by an asynchronous one."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeAlias, TypeVar

from sparing._answers import Answer
from sparing._builder import AsyncQueryBuilder, QueryBuilder, QuerySteps
from sparing._expressions import Condition

Builder = TypeVar("Builder", bound=QuerySteps)
Result = TypeVar("Result")
Asked: TypeAlias = Generator[Builder, Answer, Result]
"""Yields a query, is sent its answer, and returns the result of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Generic[Builder]):
    """The individuals that queries count, and the share of the budget that all of them cost at most."""

    query: Callable[[], Builder]
    where: Condition | None
    share: float


def answered(asked: Asked[QueryBuilder, Result], run: str | None) -> Result:
    """Ask the queries one after the other, under the idempotency keys `run-0`, `run-1` and so on."""
    try:
        query = next(asked)
        for number in count():
            query = asked.send(query.run(idempotency_key=_key(run, number)))
    except StopIteration as done:
        result: Result = done.value
    return result


async def answered_async(asked: Asked[AsyncQueryBuilder, Result], run: str | None) -> Result:
    """Ask the queries of an asynchronous client one after the other, under the keys of `answered`."""
    try:
        query = next(asked)
        for number in count():
            query = asked.send(await query.run(idempotency_key=_key(run, number)))
    except StopIteration as done:
        result: Result = done.value
    return result


def _key(run: str | None, number: int) -> str | None:
    return None if run is None else f"{run}-{number}"
