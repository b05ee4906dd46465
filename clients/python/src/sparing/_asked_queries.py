"""Sequences of queries, each made from the answer before, for a waiting and for an asynchronous client."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from sparing._answers import Answer
from sparing._builder import AsyncQueryBuilder, QueryBuilder, QuerySteps
from sparing._calls import Steps
from sparing._expressions import Condition

Builder = TypeVar("Builder", bound=QuerySteps)
Result = TypeVar("Result")
Asked: TypeAlias = Generator[Builder, Answer, Result]
"""A generator that yields queries, is sent the answer to each, and returns the result of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Generic[Builder]):
    """The individuals that some queries count, and the share of the budget that all these queries together may cost."""

    query: Callable[[], Builder]
    where: Condition | None
    share: float


def answered(asked: Asked[QueryBuilder, Result], run: str | None) -> Result:
    """Ask the queries one after the other, under the idempotency keys `run-0`, `run-1` and so on."""
    steps = Steps(asked)
    for number, query in enumerate(steps):
        steps.reply = query.run(idempotency_key=_key(run, number))
    return steps.result


async def answered_async(asked: Asked[AsyncQueryBuilder, Result], run: str | None) -> Result:
    """Ask the queries of an asynchronous client one after the other, under the keys of `answered`."""
    steps = Steps(asked)
    for number, query in enumerate(steps):
        steps.reply = await query.run(idempotency_key=_key(run, number))
    return steps.result


def _key(run: str | None, number: int) -> str | None:
    return None if run is None else f"{run}-{number}"
