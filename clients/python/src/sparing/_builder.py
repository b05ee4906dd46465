"""A query written step by step: `client.dataset("visits").query().where(...).count().noise(sigma=20).run()`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar, Unpack

from sparing._answers import Answer
from sparing._async_resources.datasets import AsyncDatasets
from sparing._async_resources.queries import AsyncQueries
from sparing._expressions import (
    Condition,
    Item,
    Literal,
    Value,
    Weights,
    count,
    count_individuals,
    histogram,
    linear,
    sum_,
)
from sparing._models import Dataset, Preview
from sparing._query import GroupKey, NoiseRequest, QueryRequest, question_json
from sparing._resources.datasets import Datasets
from sparing._resources.queries import Queries
from sparing._sql import question_of

Steps = TypeVar("Steps", bound="QuerySteps")


@dataclass(frozen=True, slots=True, repr=False)
class QuerySteps:
    """The steps of a query so far. Each gives a new one, so that a part may be used again; nothing is sent."""

    _asked: QueryRequest
    _items: tuple[Item, ...]

    def where(self, condition: Condition) -> Self:
        """Count rows of which this holds too."""
        if not isinstance(condition, Condition):
            raise TypeError(f"where takes a condition such as col('age') >= 40, not {condition!r}")
        before = self._asked.get("where")
        return self._with({"where": condition if before is None else before & condition})

    def group_by(self, *keys: GroupKey) -> Self:
        """One group for each combination of values, empty ones included; after the keys given before."""
        before = self._asked.get("group_by", ())
        return self._with({"group_by": [*(before if isinstance(before, list) else []), *keys]})

    def count(self) -> Self:
        """Select the number of rows."""
        return self._selecting(count())

    def count_individuals(self) -> Self:
        """Select the number of individuals with at least one such row."""
        return self._selecting(count_individuals())

    def sum(self, value: str | Value) -> Self:
        """Select the sum of a column or of a calculated value."""
        return self._selecting(sum_(value))

    def histogram(self, column: str, *, values: Iterable[Literal] | None = None) -> Self:
        """Select a count for each declared value of a column, or for each of `values`."""
        return self._selecting(histogram(column, values=values))

    def linear(self, column: str, weights: Weights, *, values: Sequence[Literal] | None = None) -> Self:
        """Select sparse functionals of a column: a mapping from value to weight, several, or a sparse matrix."""
        return self._selecting(linear(column, weights, values=values))

    def clip(self, l2_clip: float) -> Self:
        """Bound the L2 norm of one individual's part."""
        return self._with({"l2_clip": l2_clip})

    def rows(self, count: int) -> Self:
        """Count at most so many rows of events of one individual."""
        return self._with({"rows": count})

    def noise(self, **noise: Unpack[NoiseRequest]) -> Self:
        """State the noise: by exactly one of `sigma`, `rho`, `share`, and `half_width` with `confidence`."""
        kept = {name: value for name, value in self._asked.items() if name not in NoiseRequest.__annotations__}
        return replace(self, _asked={**kept, **noise})  # type: ignore[typeddict-item]

    def fresh(self) -> Self:
        """Do not take an answer that was released before."""
        return self._with({"reuse": False})

    @property
    def json(self) -> dict[str, object]:
        """The document that is sent. Raises ValueError without noise."""
        return question_json(self._request)

    def __repr__(self) -> str:
        steps = {name: value for name, value in self._request.items() if name != "dataset"}
        told = ", ".join(f"{name}={value!r}" for name, value in steps.items())
        return f"{type(self).__name__}({self._asked['dataset']!r}{', ' if told else ''}{told})"

    @property
    def _request(self) -> QueryRequest:
        return {**self._asked, "select": self._items} if self._items else self._asked

    def _selecting(self, item: Item) -> Self:
        return replace(self, _items=(*self._items, item))

    def _with(self, more: dict[str, object]) -> Self:
        return replace(self, _asked={**self._asked, **more})  # type: ignore[typeddict-item]


@dataclass(frozen=True, slots=True, repr=False)
class QueryBuilder(QuerySteps):
    """A query so far. Each step returns a new one, so that a part may be used again; nothing is sent before the end."""

    _queries: Queries

    def preview(self) -> Preview:
        """Everything public about the query, free: no record is touched."""
        return self._queries.preview(**self._request)

    def run(self, *, idempotency_key: str | None = None) -> Answer:
        """Ask the query and wait for its answer; raises as `client.queries.ask`."""
        return self._queries.ask(idempotency_key=idempotency_key, **self._request)


@dataclass(frozen=True, slots=True, repr=False)
class AsyncQueryBuilder(QuerySteps):
    """A query so far, of an `AsyncClient`. Each step returns a new one; `preview` and `run` are awaited."""

    _queries: AsyncQueries

    async def preview(self) -> Preview:
        """Everything public about the query, free: no record is touched."""
        return await self._queries.preview(**self._request)

    async def run(self, *, idempotency_key: str | None = None) -> Answer:
        """Ask the query and wait for its answer; raises as `client.queries.ask`."""
        return await self._queries.ask(idempotency_key=idempotency_key, **self._request)


@dataclass(frozen=True, slots=True)
class DatasetQueries:
    """One dataset of a client; made by `client.dataset(name)`."""

    name: str
    _queries: Queries
    _datasets: Datasets

    def query(self, from_: str | None = None) -> QueryBuilder:
        """An empty query of the individuals, or of the event table `from_`."""
        return QueryBuilder(_empty(self.name, from_), (), self._queries)

    def sql(self, text: str) -> QueryBuilder:
        """The query of a SELECT, whose FROM names a table; noise and bounds are given as further steps.

        Raises SQLError where the text has what the dialect does not, and ImportError without sqlglot.
        """
        items, found = question_of(text)
        return QueryBuilder({**found, "dataset": self.name}, items, self._queries)

    def describe(self) -> Dataset:
        """The public facts of the dataset: guarantee, tables and domains."""
        return self._datasets.get(dataset=self.name)


@dataclass(frozen=True, slots=True)
class AsyncDatasetQueries:
    """One dataset of an `AsyncClient`; made by `client.dataset(name)`."""

    name: str
    _queries: AsyncQueries
    _datasets: AsyncDatasets

    def query(self, from_: str | None = None) -> AsyncQueryBuilder:
        """An empty query of the individuals, or of the event table `from_`."""
        return AsyncQueryBuilder(_empty(self.name, from_), (), self._queries)

    def sql(self, text: str) -> AsyncQueryBuilder:
        """The query of a SELECT, whose FROM names a table; raises as `DatasetQueries.sql`."""
        items, found = question_of(text)
        return AsyncQueryBuilder({**found, "dataset": self.name}, items, self._queries)

    async def describe(self) -> Dataset:
        """The public facts of the dataset: guarantee, tables and domains."""
        return await self._datasets.get(dataset=self.name)


def bounded(query: Steps, *, l2_clip: float | None, rows: int | None, reuse: bool) -> Steps:
    """A query with the bounds that are given."""
    query = query if l2_clip is None else query.clip(l2_clip)
    query = query if rows is None else query.rows(rows)
    return query if reuse else query.fresh()


def _empty(dataset: str, from_: str | None) -> QueryRequest:
    return {"dataset": dataset} if from_ is None else {"dataset": dataset, "from_": from_}
