"""Linear and logistic regression by private queries, in the manner of scikit-learn; it needs numpy.

from sparing import Client, col, feature, one_hot
from sparing.learn import LogisticRegression

with Client() as client:
    model = LogisticRegression([feature((col("age") - 50) * 0.02, fill=0), one_hot("country")], target="member")
    model.fit(client.dataset("shop"), share=0.05, run="member-1")
    print(model.coef_, model.predict_proba(frame))

One query asks for the moments of the features, and each step of a logistic regression asks for a gradient. Everything
else follows from the answers and costs nothing. docs/learning.md tells how a step is charged and how to scale features.
"""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log2, sqrt
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from sparing import dbapi
from sparing._answers import Answer
from sparing._asked_queries import Asked, Builder, Source, answered, answered_async
from sparing._builder import AsyncDatasetQueries, DatasetQueries
from sparing._combine import noise_variance
from sparing._design import Design, Doubles, individuals_of, levels_of
from sparing._evaluation import Evaluation, evaluation_of_bins, evaluation_of_counts
from sparing._expressions import Column, Condition, Group, Value
from sparing._fit_errors import Coefficient, LeastSquares, Spread, Summary, drift, floor_of, last_steps, raised_in
from sparing._frames import Frame
from sparing._learning_items import AnyFeature, Loss, as_feature, feature, predict
from sparing._models import Dataset, Preview
from sparing._query import key_json

__all__ = [
    "Coefficient",
    "Evaluation",
    "FitPlan",
    "LinearRegression",
    "LogisticRegression",
    "Spread",
    "Step",
    "Summary",
]

STEPS_MAX: Final = 11
"""The default number of steps; with the moments, a fit then asks twelve queries."""
_BINS_MIN: Final = 4
_LOG_ODDS_MAX, _DEVIATION_MIN, _BEYOND = 32.0, 2.0**-6, 64.0
"""The service's bound on log-odds, the least deviation for which bins are made, and the outermost edge of bins."""
_PARAMETER_STEP: Final = 2.0**-20
"""The step to which parameters are rounded, so that a repeated fit asks the same queries even if last digits differ."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """One step: the answer with the gradient, and the parameters (the intercept last) at which it was asked."""

    parameters: Doubles
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """Everything public about a fit: its number of queries, and their previews. It costs nothing."""

    steps: int  # gradients; with the moments, there is one query more
    worst_case_share: float  # of the budget, of all queries together
    moments: Preview
    gradient: Preview | None  # of each step, with the clip that is given or the natural one; None without steps


class _LinearModel(ABC):
    """The common part of both models: constructor arguments, features of a frame, and the query for moments."""

    features: Sequence[AnyFeature]
    target: Any
    fit_intercept: bool
    rule: str | None
    coef_: Doubles
    intercept_: Any
    n_features_in_: int
    n_individuals_: float
    feature_names_in_: Any
    moments_: Answer
    n_eigenvalues_raised_: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - as in scikit-learn
        """The arguments of the constructor by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 - of the constructor
        """Change arguments of the constructor by name. Raises ValueError for an unknown name."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        told = [f"{name}={value!r}" for name, value in self.get_params().items()]
        if hasattr(self, "coef_") and not self.coverage_certified_:
            told.append("coverage_certified_=False")
        if hasattr(self, "coef_") and self.caveats_:
            told.append(f"caveats_={list(self.caveats_)}")
        return f"{type(self).__name__}({', '.join(told)})"

    @property
    def coverage_certified_(self) -> bool:
        """Tell whether coverage is certified for every answer that the fit is made from."""
        return all(answer.coverage_certified for answer in self._answers)

    @property
    def caveats_(self) -> tuple[str, ...]:
        """Sentences on directions that noise hides; `fit` warns if it hides all of them."""
        hidden, whole = self.n_eigenvalues_raised_, self._directions
        if not hidden:
            return ()
        if hidden == whole:
            return (f"No more than noise is seen along all {whole} directions of the features: this fit is noise.",)
        seen = f"No more than noise is seen along {hidden} of {whole} directions of the features"
        return (f"{seen}: coefficients along them are too small.",)

    @property
    def _answers(self) -> Sequence[Answer]:
        """The answers of the fit."""
        return [self.moments_]

    def decision_function(self, frame: Frame) -> Doubles:
        """The features times the coefficients, plus the intercept: (rows,), or (rows, classes) for several classes.

        A frame is of pandas, polars or pyarrow, or a mapping from columns to lists. Raises ValueError before a fit, and
        for a missing number without a fill.
        """
        if not hasattr(self, "coef_"):
            raise ValueError("fit the model first")
        found: Doubles = self._design.matrix(frame) @ self.coef_.T + self.intercept_
        return found[:, 0] if found.ndim > 1 and found.shape[1] == 1 else found

    @property
    def _listed(self) -> list[Any]:
        return [as_feature(each) for each in self.features]

    def fit(
        self, dataset: DatasetQueries, *, where: Condition | None = None, share: float = 0.05, run: str | None = None
    ) -> Self:
        """Fit the model by queries that together cost at most this share of each individual's budget.

        Args:
            dataset: `client.dataset(name)`.
            where: the individuals that are counted; by default all individuals with a target.
            share: the share of the budget that an individual is charged at most, divided equally among the queries.
            run: a name that makes the idempotency keys `run-0`, `run-1` and so on. If a fit broke off, repeat it with
                the same name: it gets the stored answers at no charge, and goes on.

        Warns:
            sparing.dbapi.Warning: noise hides all directions of the features, or the descent has not settled.

        Raises:
            InvalidRequestError: the service does not accept a query, and `errors` name the feature; or `run` was used
                for another fit.
            ValueError: a column is not declared, or `max_iter` is not at least 1.
        """
        if not isinstance(dataset, DatasetQueries):
            raise TypeError(f"fit takes client.dataset(name) of a Client, not {dataset!r}")
        self._begin(dataset.describe())
        answered(self._asked(Source(query=dataset.query, where=where, share=share)), run)
        self._warn()
        return self

    async def fit_async(
        self,
        dataset: AsyncDatasetQueries,
        *,
        where: Condition | None = None,
        share: float = 0.05,
        run: str | None = None,
    ) -> Self:
        """Fit the model as `fit` does, with the dataset of an `AsyncClient`."""
        if not isinstance(dataset, AsyncDatasetQueries):
            raise TypeError(f"fit_async takes client.dataset(name) of an AsyncClient, not {dataset!r}")
        self._begin(await dataset.describe())
        await answered_async(self._asked(Source(query=dataset.query, where=where, share=share)), run)
        self._warn()
        return self

    def _warn(self) -> None:
        """Warn of the caveats, apart from directions that are hidden beside others: that is usual, and costs little."""
        is_usual = 0 < self.n_eigenvalues_raised_ < self._directions
        for words in self.caveats_[is_usual:]:
            warnings.warn(words, dbapi.Warning, stacklevel=3)

    @abstractmethod
    def _asked(self, source: Source[Builder]) -> Asked[Builder, None]:
        """The queries of a fit, each yielded after the answer to the previous query; at the end, attributes are set."""

    def _begin(self, described: Dataset) -> None:
        """Read the public schema. Raises ValueError, before a query is asked, for features that do not fit it."""
        if isinstance(self.features, str) or not self.features:
            raise ValueError("features is a list of at least one feature")
        self._columns = individuals_of(described.tables)
        self._design = Design(self._listed, self._columns)

    def _query(self, source: Source[Builder]) -> Builder:
        """An unfinished query of the individuals with a target."""
        query = source.query().where(~self._target_value.is_null())
        query = query if source.where is None else query.where(source.where)
        return query if self.rule is None else query.rule(self.rule)

    @property
    @abstractmethod
    def _target_value(self) -> Value:
        """The target as a value, which is NULL for an individual without a target."""

    @property
    def _labels(self) -> list[Mapping[str, object]]:
        """The label of each coefficient of one row, the intercept's last. Raises ValueError before a fit."""
        if not hasattr(self, "coef_"):
            raise ValueError("fit the model first")
        names = range(self.n_features_in_) if self.feature_names_in_ is None else self.feature_names_in_.tolist()
        return [{"feature": name} for name in (*names, *(["intercept"] if self.fit_intercept else []))]

    @property
    def _own(self) -> list[int]:
        """The places of the fitted features in the moments; the intercept's is the last."""
        return [*range(self.n_features_in_), *([-1] if self.fit_intercept else [])]

    @property
    def _own_moments(self) -> Doubles:
        """The noisy moments (d, d) of the fitted features."""
        found: Doubles = self.moments_.matrix[np.ix_(self._own, self._own)]
        return found

    def _solved(self) -> Doubles:
        """The inverse (d, d) of the moments of the fitted features, whose eigenvalues are first raised to the floor."""
        eigenvalues, vectors = np.linalg.eigh(self._own_moments)
        floored = np.maximum(eigenvalues, floor_of(len(eigenvalues), self.moments_.sigmas[0]))
        found: Doubles = (vectors / floored) @ vectors.T
        return found

    def _describe(self, answer: Answer, size: int) -> None:
        """Set the attributes that follow from the moments alone; `size` is the number of features."""
        self.moments_, self.n_features_in_ = answer, size
        self.n_individuals_ = float(answer.matrix[-1, -1])
        names = answer.axes[-1]["select"][0].get("features")  # type: ignore[index]
        self.feature_names_in_ = None if names is None else np.array(names[:size], dtype=object)
        ones = [*self._design.one_hots, *([slice(size, size + 1)] if self.fit_intercept else [])]
        found = raised_in(self._own_moments, answer.sigmas[0], ones)
        self.n_eigenvalues_raised_, self._directions = found

    def _keep(self, parameters: Doubles) -> None:
        """Set the coefficients and the intercept; the intercept is the last of the parameters, if there is one."""
        has = self.fit_intercept
        self.coef_ = parameters[..., :-1] if has else parameters
        self.intercept_ = parameters[..., -1] if has else np.zeros(parameters.shape[:-1])


class LinearRegression(_LinearModel):
    """Least squares from one query of moments.

    Attributes:
        coef_: a coefficient for each feature.
        intercept_: the number added to all predictions, 0 without `fit_intercept`.
        n_individuals_: the number of individuals that were counted, with noise.
        feature_names_in_: the name of each feature; None above 1,000 features.
        moments_: the answer to the query.
        n_eigenvalues_raised_: the number of eigenvalues of the moments that were raised to the size of the noise. That
            one-hot features add up to the intercept or to each other is known, and not counted.
    """

    def __init__(
        self,
        features: Sequence[AnyFeature],
        target: str | Value,
        *,
        fit_intercept: bool = True,
        rule: str | None = "clip",
    ) -> None:
        """Make a model; no query is asked before `fit`.

        Args:
            features: features made by `feature` and `one_hot`; their public bounds should be of similar size.
            target: the predicted number, of similar size too; individuals without it are not counted.
            fit_intercept: whether a number is added to all predictions.
            rule: the query's rule for individuals that cannot pay; None for the dataset's.
        """
        self.features, self.target, self.fit_intercept, self.rule = features, target, fit_intercept, rule

    def plan(self, dataset: DatasetQueries, *, where: Condition | None = None, share: float = 0.05) -> FitPlan:
        """Preview the fit, free of charge."""
        self._begin(dataset.describe())
        preview = self._asking(Source(query=dataset.query, where=where, share=share)).preview()
        return FitPlan(steps=0, worst_case_share=preview.worst_case_share or 0.0, moments=preview, gradient=None)

    def predict(self, frame: Frame) -> Doubles:
        """The predicted number for each row of a frame."""
        return self.decision_function(frame)

    def summary(self, confidence: float = 0.95) -> Summary:
        """The coefficients with standard errors and intervals, of the noise alone and for the population.

        No interval is stated where an eigenvalue of the moments was raised, and none for the population where people
        may be missing or shortened; `notes` then say so. Numbers count as the service has them, within their declared
        bounds.

        Args:
            confidence: the probability with which each interval by itself holds its coefficient.

        Raises:
            ValueError: the model is not fitted, or the confidence not above 0 and below 1.
        """
        labels, answer, size = self._labels, self.moments_, self.n_features_in_
        fit = LeastSquares(
            moments=self._own_moments,
            products=answer.matrix[self._own, size],
            squares=float(answer.matrix[size, size]),
            count=self.n_individuals_,
            variance=noise_variance(answer),
            floor=floor_of(len(self._own), answer.sigmas[0]),
            parameters=np.append(self.coef_, self.intercept_) if self.fit_intercept else self.coef_,
        )
        return fit.summary(
            labels, confidence, coverage_certified=self.coverage_certified_, notes=(*self.caveats_, *answer.missing)
        )

    @property
    def _target_value(self) -> Value:
        return self.target if isinstance(self.target, Value) else Column(self.target)

    def _asked(self, source: Source[Builder]) -> Asked[Builder, None]:
        answer = yield self._asking(source)
        matrix = answer.matrix
        size = len(matrix) - 2
        self._describe(answer, size)
        self._keep(self._solved() @ matrix[self._own, size])

    def _asking(self, source: Source[Builder]) -> Builder:
        listed = [*self._listed, feature(self.target)]
        return self._query(source).moments(listed, intercept=True).noise(share=source.share)


class LogisticRegression(_LinearModel):
    """Logistic regression of a boolean or of classes: one query of moments, then `max_iter` queries of gradients.

    Attributes:
        classes_: the values of the target, as declared.
        coef_: a row of coefficients for each class; for a boolean target, one row.
        intercept_: a number for each row of `coef_`, 0 without `fit_intercept`.
        n_individuals_: the number of individuals that were counted, with noise.
        feature_names_in_: the name of each feature; None above 1,000 features.
        moments_: the answer to the query of moments.
        n_eigenvalues_raised_: as of a linear regression.
        has_settled_: false if the last steps moved log-odds by more than noise would, and by more than 0.1.
        history_: the steps so far, even if a fit broke off.
    """

    classes_: Any
    _moved: float | None

    @property
    def has_settled_(self) -> bool:
        """Tell whether more steps would move the result little, as far as noise shows (`sparing._fit_errors.drift`)."""
        return self._moved is None

    @property
    def caveats_(self) -> tuple[str, ...]:
        """Sentences on directions that noise hides, and on a descent that has not settled, of which `fit` warns too."""
        if self._moved is None:
            return super().caveats_
        last = last_steps(self.max_iter)
        steps = f"its last {last} steps" if last > 1 else "its last step"
        words = f"The descent has not settled: {steps} moved log-odds by {self._moved:.2g}. Give it more by max_iter."
        return (*super().caveats_, words)

    def summary(self) -> Summary:
        """The coefficients, without errors and intervals: none has been measured for a descent.

        Raises ValueError before a fit.
        """
        labels = self._labels
        if self._rows > 1:
            labels = [{"class": name, **label} for name in self.classes_ for label in labels]
        values = (np.column_stack([self.coef_, self.intercept_]) if self.fit_intercept else self.coef_).ravel().tolist()
        words = "No interval: those of logistic regressions are not measured."
        return Summary(
            rows=tuple(Coefficient(label=label, value=value) for label, value in zip(labels, values, strict=True)),
            n_individuals=self.n_individuals_,
            notes=(*self.caveats_, *dict.fromkeys(said for each in self._answers for said in each.missing), words),
        )

    @property
    def _answers(self) -> Sequence[Answer]:
        return [self.moments_, *(step.answer for step in self.history_)]

    def __init__(
        self,
        features: Sequence[AnyFeature],
        target: str | Column | Group,
        *,
        fit_intercept: bool = True,
        rule: str | None = "clip",
        max_iter: int = STEPS_MAX,
        l2_clip: float | None = None,
    ) -> None:
        """Make a model; no query is asked before `fit`.

        Args:
            features: features made by `feature` and `one_hot`; their public bounds should be of similar size.
            target: a boolean column, or for several classes a column or bins; individuals without it are not counted.
            fit_intercept: whether a number is added to all predictions.
            rule: the query's rule for individuals that cannot pay; None for the dataset's.
            max_iter: the number of steps.
            l2_clip: the length to which a longer gradient of one individual is shortened. The default is the largest
                error times the root mean square of the features' length, which follows from the moments, but at most
                the natural bound.
        """
        self.features, self.target, self.fit_intercept, self.rule = features, target, fit_intercept, rule
        self.max_iter, self.l2_clip = max_iter, l2_clip

    def plan(self, dataset: DatasetQueries, *, where: Condition | None = None, share: float = 0.05) -> FitPlan:
        """Preview the fit, free of charge. The steps will have at most the previewed noise."""
        self._begin(dataset.describe())
        source = Source(query=dataset.query, where=where, share=share)
        moments = self._moments(source).preview()
        width = round((sqrt(8 * moments.dimension + 1) - 1) / 2) - (not self.fit_intercept)
        at = np.zeros((self._rows, width)) if self._rows > 1 else np.zeros(width)
        step = self._gradient(source, at, self.l2_clip).preview()
        whole = (moments.worst_case_share or 0.0) + self.max_iter * (step.worst_case_share or 0.0)
        return FitPlan(steps=self.max_iter, worst_case_share=whole, moments=moments, gradient=step)

    def _asked(self, source: Source[Builder]) -> Asked[Builder, None]:
        self.history_: list[Step] = []
        answer = yield self._moments(source)
        matrix = answer.matrix
        self._describe(answer, len(matrix) - 1)
        clip = self._clip_of(matrix) if self.l2_clip is None else self.l2_clip
        # The curvature is at most the moments / 4, of several classes / 2 (Boehning 1992). So steps of less than twice
        # the inverse lower the loss; the curvature is mostly lower, and one and a half times the inverse is faster.
        direction = (3 if self._rows > 1 else 6) * self._solved()
        at = np.zeros((self._rows, len(direction))) if self._rows > 1 else np.zeros(len(direction))
        path = []
        for _ in range(self.max_iter):
            answer = yield self._gradient(source, at, clip)
            self.history_.append(Step(parameters=at, answer=answer))
            at = np.round((at - answer.matrix @ direction) / _PARAMETER_STEP) * _PARAMETER_STEP
            path.append(at)
        last = last_steps(self.max_iter)
        self._keep(np.atleast_2d(np.mean(path[-last:], axis=0)))
        gradients = np.array([np.atleast_2d(step.answer.matrix) for step in self.history_[-last:]])
        self._moved = drift(gradients, noise_variance(answer), direction, self._own_moments, self.n_individuals_)

    def predict_proba(self, frame: Frame) -> Doubles:
        """The probability of each class, in the order of `classes_`, for each row of a frame."""
        found = self.decision_function(frame)
        if found.ndim == 1:
            found = np.stack([np.zeros(len(found)), found], axis=1)
        odds = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def predict(self, frame: Frame) -> NDArray[Any]:
        """The most probable class of each row of a frame."""
        places = self.predict_proba(frame).argmax(axis=1)
        found: NDArray[Any] = np.array(self.classes_)[places]
        return found

    def as_value(self) -> Value:
        """The prediction as a value for queries: the probability of true, or for several classes the likeliest value.

        Raises ValueError before a fit, and if the target is in bins.
        """
        if not hasattr(self, "coef_"):
            raise ValueError("fit the model first")
        rows = np.column_stack([self.coef_, self.intercept_]) if self.fit_intercept else self.coef_
        if self._loss == "logistic":
            return predict(self._listed, rows[0], intercept=self.fit_intercept)
        if isinstance(self._key, str):
            return predict(self._listed, rows, link="softmax", target=self._key, intercept=self.fit_intercept)
        raise ValueError("bins of a target are no column that a query could predict")

    def evaluate(
        self,
        dataset: DatasetQueries,
        *,
        where: Condition | None = None,
        share: float = 0.01,
        bins: int = 32,
        run: str | None = None,
    ) -> Evaluation:
        """Measure how well the model predicts.

        For a boolean target, one query counts individuals by target and bin of the log-odds. For several classes, two
        queries count the correctly predicted individuals and all individuals.

        Args:
            dataset: `client.dataset(name)`.
            where: the individuals for which predictions are compared, such as a fold that was kept out of the fit.
            share: the share of the budget that an individual is charged at most.
            bins: the number of bins of the log-odds, which is even and at least 4.
            run: a name that makes the idempotency keys; it must differ from the name of the fit.

        Raises:
            ValueError: the model is not fitted, the target is in bins, or `bins` is odd or below 4.
        """
        source = Source(query=dataset.query, where=where, share=share)
        return answered(self._evaluating(source, bins), run)

    async def evaluate_async(
        self,
        dataset: AsyncDatasetQueries,
        *,
        where: Condition | None = None,
        share: float = 0.01,
        bins: int = 32,
        run: str | None = None,
    ) -> Evaluation:
        """Evaluate the model as `evaluate` does, with the dataset of an `AsyncClient`."""
        source = Source(query=dataset.query, where=where, share=share)
        return await answered_async(self._evaluating(source, bins), run)

    def _evaluating(self, source: Source[Builder], bins: int) -> Asked[Builder, Evaluation]:
        if bins < _BINS_MIN or bins % 2:
            raise ValueError(f"bins must be an even number from {_BINS_MIN} up, got {bins}")
        value = self.as_value()
        if self._loss == "logistic":
            edges = self._log_odds_edges(bins)
            binned = self._log_odds.bins(edges)
            counted = self._query(source).group_by(self._key, binned).count().noise(share=source.share)
            return evaluation_of_bins((yield counted), bins, negative=edges.index(0.0))
        share = source.share / 2
        right = yield self._query(source).where(value == Column(self._key)).count().noise(share=share)
        whole = yield self._query(source).where(~value.is_null()).count().noise(share=share)
        return evaluation_of_counts(right, whole)

    @property
    def _log_odds(self) -> Value:
        """The predicted log-odds. They are binned instead of probabilities, which for a rare target are all near 0."""
        rows = np.column_stack([self.coef_, self.intercept_]) if self.fit_intercept else self.coef_
        return predict(self._listed, rows[0], link="identity", intercept=self.fit_intercept)

    def _log_odds_edges(self, bins: int) -> list[float]:
        """The edges of bins of the log-odds, two to four deviations to each side of the mean; 0 is always an edge.

        Bins have equal widths, but the outermost bins have everything beyond. Mean and deviation follow from the
        released moments of the fit.
        """
        moments, weights = self.moments_.matrix, self.coef_[0]
        count = max(float(moments[-1, -1]), 1.0)
        middle = float(weights @ moments[:-1, -1]) / count
        variance = float(weights @ moments[:-1, :-1] @ weights) / count - middle * middle
        deviation = min(max(sqrt(max(variance, 0.0)), _DEVIATION_MIN), _LOG_ODDS_MAX / 4)
        width = 2.0 ** floor(log2(8 * deviation / bins))
        middle = min(max(middle + float(self.intercept_[0]), -_LOG_ODDS_MAX), _LOG_ODDS_MAX)
        first = round(middle / width) - bins // 2
        edges = [width * (first + number) for number in range(bins + 1)]
        edges[0], edges[-1] = -_BEYOND, _BEYOND
        if 0.0 not in edges:
            edges[1 if first >= 0 else -2] = 0.0
        return edges

    @property
    def _key(self) -> Any:  # noqa: ANN401 - as in the query language
        return key_json(self.target)

    @property
    def _target_value(self) -> Value:
        return Column(self._key if isinstance(self._key, str) else next(iter(self._key.values()))["column"])

    @property
    def _loss(self) -> Loss:
        is_boolean = isinstance(self._key, str) and self._columns[self._key]["type"] == "boolean"
        return "logistic" if is_boolean else "softmax"

    @property
    def _rows(self) -> int:
        """The number of rows of parameters."""
        return 1 if self._loss == "logistic" else len(self.classes_)

    def _begin(self, described: Dataset) -> None:
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter}")
        super()._begin(described)
        self.classes_ = list(levels_of(self._key, self._columns).names)
        if len(self.classes_) == 1:
            raise ValueError(f"the target has one value, {self.classes_[0]!r}, and nothing to tell apart")

    def _moments(self, source: Source[Builder]) -> Builder:
        """The query for the moments, always with an intercept, whose own entry is the number of individuals."""
        noise = source.share / (self.max_iter + 1)
        return self._query(source).moments(self._listed, intercept=True).noise(share=noise)

    def _gradient(self, source: Source[Builder], at: Doubles, clip: float | None) -> Builder:
        query = self._query(source).gradient(
            self._loss, target=self.target, features=self._listed, parameters=at, intercept=self.fit_intercept
        )
        query = query if clip is None else query.clip(clip)
        return query.noise(share=source.share / (self.max_iter + 1))

    def _clip_of(self, moments: Doubles) -> float | None:
        """The default clip: the largest error times the features' root mean square length; None if noise hides it."""
        own = np.diag(moments) if self.fit_intercept else np.diag(moments)[:-1]
        if moments[-1, -1] <= 0 or own.sum() <= 0:
            return None
        error = sqrt(2) if self._rows > 1 else 1
        return float(f"{error * sqrt(own.sum() / moments[-1, -1]):.6g}")
