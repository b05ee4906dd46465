"""A query written step by step: `client.dataset("visits").query().where(...).count().noise(sigma=20).run()`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, Unpack

from sparing._answers import Answer
from sparing._async_sender import AsyncSender
from sparing._averages import difference, mean, quantile, ratio, stddev, variance
from sparing._exhausted import ExhaustedCount, exhausted_counts
from sparing._expressions import (
    Column,
    Condition,
    Exact,
    Group,
    Item,
    Literal,
    Number,
    Value,
    Weights,
    active,
    count,
    count_individuals,
    exhausted,
    histogram,
    linear,
    sum_,
)
from sparing._learning_items import AnyFeature, Loss, gradient, moments
from sparing._models import Dataset, Preview
from sparing._precisions import ItemNoise, noise_of
from sparing._query import ByItem, GroupKey, NoiseRequest, QueryRequest, question_json
from sparing._sender import Sender
from sparing._sql import question_of
from sparing._verbs import datasets, queries

Steps = TypeVar("Steps", bound="QuerySteps")


@dataclass(frozen=True, slots=True, repr=False)
class QuerySteps:
    """An unfinished query. Each step returns a new query, so that every one may be used again; nothing is sent."""

    _asked: QueryRequest
    _items: tuple[tuple[Item, ItemNoise], ...]

    def where(self, condition: Condition) -> Self:
        """Keep only rows for which this condition holds too."""
        if not isinstance(condition, Condition):
            raise TypeError(f"where takes a condition such as col('age') >= 40, not {condition!r}")
        before = self._asked.get("where")
        return self._with({"where": condition if before is None else before & condition})

    def group_by(self, *keys: GroupKey) -> Self:
        """Add keys: the answer has a group for each combination of their values, also for combinations without rows."""
        before = self._asked.get("group_by", ())
        return self._with({"group_by": [*(before if isinstance(before, list) else []), *keys]})

    def count(self, **noise: Unpack[ItemNoise]) -> Self:
        """Select the number of rows. Every item may have a precision of its own, as in `.count(sigma=5)`."""
        return self._selecting(count(), noise)

    def count_individuals(self, **noise: Unpack[ItemNoise]) -> Self:
        """Select the number of individuals with at least one selected row."""
        return self._selecting(count_individuals(), noise)

    def active(self, share: Exact, **noise: Unpack[ItemNoise]) -> Self:
        """Select the number of individuals with at least this share of the dataset's budget left, as the only item.

        Each counted individual pays for the query. The query's worst case may not exceed the share.
        """
        return self._selecting(active(share), noise)

    def exhausted(self) -> Self:
        """Select the next tick of the dataset's monitor as the only item, without stating noise; it charges nothing."""
        return self._selecting(exhausted(), {})

    def moments(self, features: Sequence[AnyFeature], *, intercept: bool = False, **noise: Unpack[ItemNoise]) -> Self:
        """Select the summed products of each pair of features as the only item; `answer.matrix` is their matrix."""
        return self._selecting(moments(features, intercept=intercept), noise)

    def gradient(
        self,
        loss: Loss,
        *,
        target: str | Value | Group,
        features: Sequence[AnyFeature],
        parameters: Any,  # noqa: ANN401 - of `sparing.gradient`
        intercept: bool = False,
        residual_clip: Exact | None = None,
        **noise: Unpack[ItemNoise],
    ) -> Self:
        """Select the gradient of a linear model's loss at some parameters as the only item; `answer.matrix` has it."""
        item = gradient(
            loss,
            target=target,
            features=features,
            parameters=parameters,
            intercept=intercept,
            residual_clip=residual_clip,
        )
        return self._selecting(item, noise)

    def sum(self, value: str | Value, **noise: Unpack[ItemNoise]) -> Self:
        """Select the sum of a column or of a calculated value."""
        return self._selecting(sum_(value), noise)

    def histogram(
        self, column: str | Group, *, values: Iterable[Literal] | None = None, **noise: Unpack[ItemNoise]
    ) -> Self:
        """Select a count for each declared value of a column, each of `values`, or each bin or calendar part."""
        return self._selecting(histogram(column, values=values), noise)

    def linear(
        self, column: str, weights: Weights, *, values: Sequence[Literal] | None = None, **noise: Unpack[ItemNoise]
    ) -> Self:
        """Select weighted counts of a column's values; `weights` are one or several mappings, or a sparse matrix."""
        return self._selecting(linear(column, weights, values=values), noise)

    def mean(self, value: str | Value, *, weight: float = 1) -> Self:
        """Select the mean of a column or of a calculated value, over the rows with a value.

        The service works it out from linear items, among which a share or a rho is divided; `answer.averages` has the
        mean.
        """
        return self._selecting(mean(value), {"weight": weight})

    def variance(self, value: str | Value, *, weight: float = 1) -> Self:
        """Select the population variance, over the rows that have a value."""
        return self._selecting(variance(value), {"weight": weight})

    def stddev(self, value: str | Value, *, weight: float = 1) -> Self:
        """Select the population standard deviation, over the rows that have a value."""
        return self._selecting(stddev(value), {"weight": weight})

    def quantile(
        self,
        value: str | Value,
        probability: float,
        *,
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        weight: float = 1,
    ) -> Self:
        """Select the point below which this share of the rows with a value lies: 0.5 for the median.

        It is interpolated from counts in bins: 64 or `bins` of them between the declared bounds, or those between
        `edges`. Quantiles of one value with the same bins share their counts.
        """
        return self._selecting(quantile(value, probability, bins=bins, edges=edges), {"weight": weight})

    def ratio(self, of: Item, to: Item, *, weight: float = 1) -> Self:
        """Select a count or a sum divided by another one: `.ratio(sum_("spend"), count())`."""
        return self._selecting(ratio(of, to), {"weight": weight})

    def difference(self, of: Item, by: str | Column, *, first: Literal, second: Literal, weight: float = 1) -> Self:
        """Select an item, such as a mean, in the second of two groups of a column, less the same in the first."""
        return self._selecting(difference(of, by, first=first, second=second), {"weight": weight})

    def clip(self, l2_clip: ByItem) -> Self:
        """Bound the L2 norm of one individual's vector; a list has a bound for each of several items."""
        return self._with({"l2_clip": l2_clip})

    def rows(self, count: int) -> Self:
        """Let an individual with more than `count` selected events weigh as much as one with `count`.

        Each of its events then counts for a fraction: counts and sums are no whole numbers any more, and too small if
        individuals have more events.
        """
        return self._with({"rows": count})

    def noise(self, **noise: Unpack[NoiseRequest]) -> Self:
        """State the noise: by exactly one of `sigma`, `rho`, `share`, `half_width` with `confidence`, and `scale`.

        `scale` is the scale of Laplace noise; the other arguments mean Gaussian noise unless `mechanism="laplace"`.

        With several items, `sigma` and `half_width` may be lists with a number for each item, and `weights` divide
        `rho` or `share` in unequal parts.
        """
        kept = {name: value for name, value in self._asked.items() if name not in NoiseRequest.__annotations__}
        return replace(self, _asked={**kept, **noise})  # type: ignore[typeddict-item]

    def reduce(self, function: str) -> Self:
        """Ask for one noisy number of the exact sum: `max`, its largest coordinate, or `norm`, its length."""
        return self._with({"reduce": function})

    def rule(self, rule: str) -> Self:
        """Set the rule for individuals that cannot pay.

        `skip`, the default, is the dataset's rule, which leaves them out. `clip` shortens their vectors to what they
        can pay for.
        """
        return self._with({"rule": rule})

    def fresh(self) -> Self:
        """Ask for a fresh answer, not for one that was released before."""
        return self._with({"reuse": False})

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self._asked["dataset"]

    @property
    def json(self) -> dict[str, object]:
        """The document that is sent. Raises ValueError if no noise is stated."""
        return question_json(self._request)

    def __repr__(self) -> str:
        items = {"select": [item for item, _ in self._items]} if self._items else {}
        steps = {name: value for name, value in (self._asked | items).items() if name != "dataset"}
        told = ", ".join(f"{name}={value!r}" for name, value in steps.items())
        return f"{type(self).__name__}({self._asked['dataset']!r}{', ' if told else ''}{told})"

    @property
    def _request(self) -> QueryRequest:
        """The arguments of `client.queries.ask` for this query."""
        stated = {name: value for name, value in self._asked.items() if name in NoiseRequest.__annotations__}
        noise = noise_of([precision for _, precision in self._items], stated)  # type: ignore[arg-type]
        select = {"select": [item for item, _ in self._items]} if self._items else {}
        return {**self._asked, **noise, **select}  # type: ignore[typeddict-item]

    def _selecting(self, item: Item, noise: ItemNoise) -> Self:
        return replace(self, _items=(*self._items, (item, noise)))

    def _with(self, more: dict[str, object]) -> Self:
        return replace(self, _asked={**self._asked, **more})  # type: ignore[typeddict-item]


@dataclass(frozen=True, slots=True, repr=False)
class QueryBuilder(QuerySteps):
    """An unfinished query. Each step returns a new query; nothing is sent before `preview` or `run`."""

    _sender: Sender

    def preview(self) -> Preview:
        """Everything public about the query. It is free: no record is touched."""
        return self._sender.run(queries.preview(self))

    def run(self, *, idempotency_key: str | None = None) -> Answer:
        """Ask the query and wait for its answer. Raises the exceptions of `client.queries.ask`."""
        return self._sender.run(queries.ask(self, idempotency_key))


@dataclass(frozen=True, slots=True, repr=False)
class AsyncQueryBuilder(QuerySteps):
    """An unfinished query of an `AsyncClient`. Each step returns a new query; `preview` and `run` are awaited."""

    _sender: AsyncSender

    async def preview(self) -> Preview:
        """Everything public about the query. It is free: no record is touched."""
        return await self._sender.run(queries.preview(self))

    async def run(self, *, idempotency_key: str | None = None) -> Answer:
        """Ask the query and wait for its answer. Raises the exceptions of `client.queries.ask`."""
        return await self._sender.run(queries.ask(self, idempotency_key))


@dataclass(frozen=True, slots=True)
class DatasetQueries:
    """One dataset of a client; made by `client.dataset(name)`."""

    name: str
    _sender: Sender

    def query(self, from_: str | None = None) -> QueryBuilder:
        """An empty query of the individuals, or of the event table `from_`."""
        return QueryBuilder(_empty(self.name, from_), (), self._sender)

    def sql(self, text: str) -> QueryBuilder:
        """The query of a SELECT, whose FROM names a table; further steps add noise and bounds.

        Raises SQLError for a text that is not in the dialect, and ImportError without sqlglot.
        """
        listed, found = question_of(text)
        items: tuple[tuple[Item, ItemNoise], ...] = tuple((item, {}) for item in listed)
        return QueryBuilder({**found, "dataset": self.name}, items, self._sender)

    def describe(self) -> Dataset:
        """The public facts of the dataset: guarantee, tables and domains."""
        return self._sender.run(datasets.one(self.name))

    def exhausted_curve(self) -> tuple[ExhaustedCount, ...]:
        """The running counts of exhausted individuals, one for each tick so far, with their standard errors.

        They come from released ticks and cost nothing; `query().exhausted().run()` asks for the next tick.

        Raises:
            NotFoundError: the dataset has no monitor.
        """
        return exhausted_counts(self._sender.run(datasets.monitor(self.name)))


@dataclass(frozen=True, slots=True)
class AsyncDatasetQueries:
    """One dataset of an `AsyncClient`; made by `client.dataset(name)`."""

    name: str
    _sender: AsyncSender

    def query(self, from_: str | None = None) -> AsyncQueryBuilder:
        """An empty query of the individuals, or of the event table `from_`."""
        return AsyncQueryBuilder(_empty(self.name, from_), (), self._sender)

    def sql(self, text: str) -> AsyncQueryBuilder:
        """The query of a SELECT, whose FROM names a table. Raises the exceptions of `DatasetQueries.sql`."""
        listed, found = question_of(text)
        items: tuple[tuple[Item, ItemNoise], ...] = tuple((item, {}) for item in listed)
        return AsyncQueryBuilder({**found, "dataset": self.name}, items, self._sender)

    async def describe(self) -> Dataset:
        """The public facts of the dataset: guarantee, tables and domains."""
        return await self._sender.run(datasets.one(self.name))

    async def exhausted_curve(self) -> tuple[ExhaustedCount, ...]:
        """The running counts of exhausted individuals. Raises the exceptions of `DatasetQueries.exhausted_curve`."""
        return exhausted_counts(await self._sender.run(datasets.monitor(self.name)))


def bounded(query: Steps, *, l2_clip: ByItem | None, rows: int | None, reuse: bool) -> Steps:
    """The query with the given bounds added."""
    query = query if l2_clip is None else query.clip(l2_clip)
    query = query if rows is None else query.rows(rows)
    return query if reuse else query.fresh()


def _empty(dataset: str, from_: str | None) -> QueryRequest:
    return {"dataset": dataset} if from_ is None else {"dataset": dataset, "from_": from_}
