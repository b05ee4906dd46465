"""The experiment of koskela_tabular.py through a running service: a private fit whose charges are the ledger's.

`sparing.learn.LogisticRegression` asks one query for moments and 99 for gradients. Each costs a fiftieth of the budget
in the worst case, so that the filter may begin after 50 queries, as in the figures. An individual that cannot pay has
its gradient shortened to what it has left (the rule `clip`, Algorithm 3 of Feldman and Zrnic 2021). Then `active` is
asked by group.

At the end the curator's accounts are read, and the ledger is read from the store. This process works out every charge
again from the released parameters. The noise is the service's own, and no seed repeats it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from service.core.charge import UNITS_PER_RHO
from service.run.composition import open_service
from sparing import Client, col, feature, one_hot
from sparing.learn import LogisticRegression
from sparing_papers.counted import Served
from sparing_papers.descent import area_under_curve
from sparing_papers.figure import DELTA, PaperFigure, Request, Rows, Table, tabulated
from sparing_papers.koskela_descent import CERTIFIED, EPSILON, TABULAR, draw_shares, shares_of_rho
from sparing_papers.style import BLUE, INK, ORANGE, TEAL, label, plain
from sparing_papers.tabular import AGE_BOUNDS, BRACKETS, INCOME_EDGES, SIZE_BOUNDS, People, read_people, split

__all__ = ["FIGURES", "Active", "Asked", "ServedFit", "compute", "fit_through_service", "recomputed_units"]

NAME: Final = "people"
QUICK_PEOPLE: Final = 800
ACTIVE_SHARES: Final = (0.25, 0.5, 0.75)
"""The shares of the budget for which `active` is asked: how many individuals have at least this share left."""
ACTIVE_COST: Final = 0.002
"""The share of the budget that one query of `active` costs each individual that it counts."""
FEATURE_STEP: Final = 2.0**-10
"""The step of the features in the service, at which they are exact.

The largest are between 1 and 2: at most 2^11 steps.
"""
ARGUMENT_STEP: Final = 2.0**-10
"""The step to which the service rounds a prediction's argument."""
COLUMNS: Final[Mapping[str, object]] = {
    "income": {"type": "integer", "lower": INCOME_EDGES[0], "upper": INCOME_EDGES[-1]},
    "age": {"type": "integer", "lower": AGE_BOUNDS[0], "upper": AGE_BOUNDS[1]},
    "size": {"type": "integer", "lower": SIZE_BOUNDS[0], "upper": SIZE_BOUNDS[1]},
    "is_married": {"type": "boolean"},
    "is_male": {"type": "boolean"},
    "is_eligible": {"type": "boolean"},
    "has_account": {"type": "boolean"},
}
Doubles = NDArray[np.float64]
Units = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One query of the fit: its noise and grid, and for a gradient its parameters (d,)."""

    sigma: float
    grid: float
    parameters: Doubles | None  # None: moments


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """The number of individuals in each bracket that have a share of the budget left."""

    answered: tuple[float, ...]  # by the service, with noise
    half_width: float  # of 95 %
    counted: tuple[int, ...]  # by the accounts at that time


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFit:
    """A fit through the service, with all accounts in the order of the individuals."""

    coefficients: Doubles  # (d,)
    clip: float
    asked: list[Asked]
    spent_by_fit: Units  # (n,) units of 2^-40 rho, before `active` was asked
    spent_units: Units  # (n,) at the end
    limit_units: int
    ledger_by_slot: Units  # (n,) the sums of all charges of each slot, over all entries
    active: dict[float, Active]  # by the share of the budget left


def fit_through_service(
    found: Served, people: People, *, certified: int, clip: float, tell: Callable[[float], None] = lambda _: None
) -> ServedFit:
    """Fit with twice as many queries as the budget pays for in the worst case. Raises SparingError."""
    with Client(base_url=found.url, api_key=found.key) as curator:
        _upload(curator, people)
        tell(0.2)
        made = curator.principals.create(role="analyst", name="fits")
        with Client(base_url=found.url, api_key=made.key) as analyst:
            model = LogisticRegression(
                _features(), target="has_account", fit_intercept=False, max_iter=2 * certified - 1, l2_clip=clip
            )
            model.fit(analyst.dataset(NAME), share=2.0, run="fit")
            spent_by_fit, _ = _accounts(curator)
            tell(0.8)
            active = {share: _active(curator, analyst, people, share) for share in ACTIVE_SHARES}
        spent, limit = _accounts(curator)
    moments = Asked(sigma=model.moments_.sigmas[0], grid=model.moments_.grids[0], parameters=None)
    steps = [
        Asked(sigma=each.answer.sigmas[0], grid=each.answer.grids[0], parameters=each.parameters)
        for each in model.history_
    ]
    return ServedFit(
        coefficients=model.coef_[0],
        clip=clip,
        asked=[moments, *steps],
        spent_by_fit=spent_by_fit,
        spent_units=spent,
        limit_units=limit,
        ledger_by_slot=_ledger(found, len(people)),
        active=active,
    )


def _features() -> list[Any]:
    """The features of `People.features`, as expressions of a query."""
    return [
        one_hot(col("income").bins(list(INCOME_EDGES))),
        feature((col("age") - 44) * (1 / 16)),
        feature((col("size") - 4) * 0.25),
        "is_married",
        "is_male",
        "is_eligible",
    ]


def _upload(curator: Client, people: People) -> None:
    curator.datasets.create(
        name=NAME,
        tables={NAME: {"kind": "individuals", "key": "person_id", "columns": COLUMNS}},
        capacity=len(people),
        epsilon=EPSILON,
        delta=str(DELTA),
        accounting="gdp",
    )
    rows: dict[str, list[Any]] = {"person_id": [_key(number) for number in range(len(people))]}
    for name, declared in COLUMNS.items():
        values = getattr(people, name)
        is_boolean = declared == {"type": "boolean"}
        rows[name] = (values == 1).tolist() if is_boolean else values.tolist()
    curator.datasets.upload(dataset=NAME, table=NAME, data=rows)


def _key(number: int) -> str:
    return f"p{number:06}"


def _accounts(curator: Client) -> tuple[Units, int]:
    """The spent units (n,) of all individuals in their order, and the limit that they share."""
    rows = {each.key: each for each in curator.datasets.budgets(dataset=NAME, page_size=1000)}
    (limit,) = {each.budget_units for each in rows.values()}
    return np.array([rows[_key(number)].spent_units for number in range(len(rows))], dtype=np.int64), limit


def _active(curator: Client, analyst: Client, people: People, share: float) -> Active:
    spent, limit = _accounts(curator)
    has_left = limit - spent >= ceil(Fraction(str(share)) * limit)
    query = analyst.dataset(NAME).query().group_by(col("income").bins(list(INCOME_EDGES))).active(share)
    answer = query.noise(share=ACTIVE_COST).run()
    counted = np.bincount(people.bracket[has_left], minlength=len(BRACKETS))
    return Active(answered=answer.values, half_width=answer.half_widths[0], counted=tuple(counted.tolist()))


def _ledger(found: Served, people: int) -> Units:
    """The charges of each slot (n,), added up over all entries of the ledger."""
    with open_service(found.settings) as opened:
        record = opened.store.dataset(NAME)
        if record is None:
            raise LookupError(f"there is no dataset {NAME}")
        units = np.zeros(people, dtype=np.int64)
        with opened.store.transaction(record.id, lock=False) as transaction:
            for entry in transaction.entries(after=0):
                slots, charges, _ = entry.decode()
                units[slots] += charges
    return units


def recomputed_units(people: People, found: ServedFit) -> tuple[Doubles, Doubles]:
    """Each individual's charges by the queries of the fit, in doubles, and how far off they may be: (n,), (n,) units.

    The charge of a gradient is min(|error| |x|, clip)^2 / (2 sigma^2), and at most what is left. The service rounds
    twice. It rounds a prediction's argument x theta to 2^-10, which moves the prediction by at most 2^-13. It rounds
    the error to a step s or, where the error is shortened, down by less than a step. So a norm is off by at most delta
    = (2^-13 + s) |x|, and a charge by (2 norm delta + delta^2) / (2 sigma^2) and a unit. A sum of charges is off by at
    most the sum of these. Moments are off by at most the unit, because features are whole steps.
    """
    features = people.features.astype(np.float64)
    lengths = np.sqrt((features**2).sum(axis=1))
    spent, off = np.zeros(len(people)), np.zeros(len(people))
    for each in found.asked:
        price = UNITS_PER_RHO / (2 * each.sigma**2)
        if each.parameters is None:
            ones = np.column_stack([features, np.ones(len(people))])  # the fit asks for the number of individuals too
            charges, slack = price * ((ones**2).sum(axis=1) ** 2 + (ones**4).sum(axis=1)) / 2, np.zeros(len(people))
        else:
            errors = np.abs(1 / (1 + np.exp(-features @ each.parameters)) - people.has_account)
            norms = np.minimum(errors * lengths, found.clip)
            slack = (ARGUMENT_STEP / 8 + each.grid / FEATURE_STEP) * lengths
            charges, slack = price * norms**2, price * (2 * norms + slack) * slack
        spent = np.minimum(spent + charges, found.limit_units)
        off += slack + 1
    return spent, off


@tabulated("curve", "at", "value", "half width")
def compute(request: Request) -> Rows:
    """The accounts of a fit on the training set, as own epsilons; their sum; and `active` by bracket."""
    train, test = split(read_people(), request.seed)
    certified = CERTIFIED
    if request.quick:
        train, certified = train.of(np.arange(QUICK_PEOPLE)), 10
    with request.served() as running:
        found = fit_through_service(running, train, certified=certified, clip=TABULAR.clip, tell=request.tell)
    spent, off = recomputed_units(train, found)
    area = area_under_curve(test.features, test.has_account, found.coefficients[None, :])
    largest_part = float((np.abs(found.spent_by_fit - spent) / off).max())
    is_exhausted = 1000 * (found.limit_units - found.spent_by_fit) < found.limit_units
    yield from (
        ("area under the curve", 0, area, 0),
        ("units, sum of accounts", 0, int(found.spent_units.sum()), 0),
        ("units, sum of the ledger", 0, int(found.ledger_by_slot.sum()), 0),
        ("units of the fit, sum of accounts", 0, int(found.spent_by_fit.sum()), 0),
        ("units of the fit, recomputed", 0, float(spent.sum()), float(off.sum())),
        ("difference of an individual, largest part of its bound", 0, largest_part, 0),
        ("units, limit of an individual", 0, found.limit_units, 0),
        ("individuals with less than a thousandth of the budget left", 0, int(np.count_nonzero(is_exhausted)), 0),
    )
    shares = shares_of_rho(found.spent_by_fit / UNITS_PER_RHO, float(EPSILON))
    yield from (("individuals, share", edge, share, 0) for edge, share in shares)
    for place, bracket in enumerate(BRACKETS):
        yield f"people, {bracket}", 0, int(np.count_nonzero(train.bracket == place)), 0
        for share, active in found.active.items():
            yield f"active, {bracket}", share, active.answered[place], active.half_width
            yield f"accounts, {bracket}", share, active.counted[place], 0


def draw(figure: Figure, table: Table) -> None:
    """Draw own epsilons on the left and `active` by bracket on the right."""
    histogram, active = figure.subplots(1, 2)
    _draw_histogram(histogram, table)
    _draw_active(active, table)


def _draw_histogram(axes: Axes, table: Table) -> None:
    edges, shares, _ = table.columns("individuals, share")
    draw_shares(axes, edges, shares, BLUE)
    ((_, accounts, _),) = table.series("units, sum of accounts")
    ((_, ledger, _),) = table.series("units, sum of the ledger")
    sums = f"sum of the accounts: {accounts:,.0f} units", f"sum of the ledger: {ledger:,.0f} units"
    axes.text(0.97, 0.85, "\n".join(sums), color=BLUE, fontsize=9, ha="right", transform=axes.transAxes)
    plain(axes, "A fit through the service", x="own ε by the account, at δ = 10⁻⁵", y="individuals, %", grid="y")


def _draw_active(axes: Axes, table: Table) -> None:
    """Draw answers as points with half widths, and the curator's accounts as lines."""
    places = range(len(BRACKETS))
    people = [table.series(f"people, {bracket}")[0][1] for bracket in BRACKETS]
    for number, (share, colour) in enumerate(zip(ACTIVE_SHARES, (TEAL, ORANGE, INK), strict=True)):
        answers = [table.series(f"active, {bracket}", share)[0] for bracket in BRACKETS]
        counted = [table.series(f"accounts, {bracket}", share)[0][0] for bracket in BRACKETS]
        heights = [100 * value / of for value, of in zip(counted, people, strict=True)]
        axes.plot(places, heights, color=colour, linewidth=1.2)
        shown = [100 * value / of for (value, _), of in zip(answers, people, strict=True)]
        bars = [100 * half_width / of for (_, half_width), of in zip(answers, people, strict=True)]
        beside = [place + 0.12 * (number - 1) for place in places]
        axes.errorbar(beside, shown, yerr=bars, fmt="o", color=colour, markersize=4, capsize=3, linewidth=1.2)
        label(axes, f"{100 * share:.0f} % left", (len(BRACKETS) - 0.7, heights[-1]), colour)
    axes.set_xticks(list(places), BRACKETS)
    plain(
        axes,
        "Individuals with so much of the budget left",
        x="income, thousands of dollars",
        y="of the bracket, %",
        grid="y",
        xlim=(-0.3, len(BRACKETS) + 0.3),
        ylim=(0, None),
    )


FIGURES: Final = [
    PaperFigure(
        name="koskela-tabular-service",
        title="Koskela et al., own epsilons of a fit through the service",
        compute=compute,
        draw=draw,
        size=(11.4, 3.9),
        share=12,
        keeps_numbers=True,
    )
]
