"""A service in the audit's own process, right by default, that makes one of many mistakes on purpose.

It is as small as a filter can be, and written without looking at the audit's: what the audit finds in it, it finds from
the answers and accounts alone.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import ceil, exp, expm1, floor, isqrt, log
from statistics import NormalDist

import numpy as np

from sparing import Dataset, Guarantee
from sparing_audit.accountings import ACCOUNTINGS, OF_RULES, Accounting
from sparing_audit.adversaries import ADVERSARIES, ASKERS
from sparing_audit.game import Game
from sparing_audit.laws import Doubles
from sparing_audit.moves import offered, schedule, turns
from sparing_audit.noise import Laplace, Law
from sparing_audit.service import Account, Offered, Query, Receipts, Refused, Released, Table, Values
from sparing_audit.victims import drawn_victims

UNIT = 2**40


@dataclass
class Person:
    """A record, its rows, and the account that outlives them."""

    limit: int
    value: int | None = None
    rows: list[int] = field(default_factory=list)
    spent: int = 0
    spent_by: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # by analyst, for a ledger for each
    spent_float: float = 0.0
    spent_before: int = 0  # at the query before the last
    last_charge: int = 0
    charged: int = 0
    left_out: int = 0
    is_out: bool = False
    is_paused: bool = False
    is_erased: bool = False
    receipts: list[tuple[int, str, int]] = field(default_factory=list)


@dataclass
class Stored:
    """A dataset."""

    is_dropping: bool
    budget: int
    people: dict[str, Person] = field(default_factory=dict)
    ledger: dict[int, tuple[int, int]] = field(default_factory=dict)
    answers: dict[object, tuple[Query, Released]] = field(default_factory=dict)  # by analyst and key
    released: list[tuple[Query, Released]] = field(default_factory=list)


@dataclass
class FakeService:
    """The service; `mistake` is the one that it makes, or empty."""

    mistake: str = ""
    seed: int = 0
    rules: tuple[str, ...] = ("skip", "drop")
    query_rules: tuple[str, ...] = ("clip",)
    accountings: tuple[str, ...] = ()
    stored: dict[str, Stored] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def offered(self) -> Offered:
        mechanisms = ("gaussian", "laplace")
        return Offered(
            datasets=self.rules, queries=self.query_rules, accountings=self.accountings, mechanisms=mechanisms
        )

    def register(self, dataset: str, *, rule: str, people: int, accounting: Accounting) -> Dataset:
        budget = int(accounting.amount * UNIT)
        self.stored[dataset] = Stored(rule == "drop", budget)
        unit = {"pure": "epsilon", "rdp": f"rho at order {accounting.order:g}"}.get(accounting.kind, "rho")
        other: Mapping[str, object] | str = {"kind": "zcdp"} if accounting.kind == "gdp" else "gdp"
        return Dataset(
            name=dataset,
            guarantee=Guarantee(),
            budget_rho=Decimal(accounting.amount),
            budget_units=budget,
            mu=None,
            capacity=people,
            rule=rule,
            tables={},
            accounting=other if self.mistake == "another accounting" else accounting.document,
            unit=unit,
        )

    def upload(self, dataset: str, table: Table, values: Values) -> None:
        stored = self.stored[dataset]
        for key, value in values:
            person = stored.people.setdefault(key, Person(limit=stored.budget))
            if table == "rows" and value is not None:
                person.rows.append(value)
                continue
            if person.is_erased and self.mistake == "refund at return":
                person = stored.people[key] = Person(limit=person.limit)
            person.value, person.is_erased = value, False

    def ask(self, dataset: str, query: Query, *, analyst: int, key: str, reuse: bool = False) -> Released:
        stored = self.stored[dataset]
        known = stored.answers.get((analyst, key))
        if known is not None and self.mistake != "retries charged again":
            if known[0] != query and self.mistake != "keys good for anything":
                raise Refused(status=409, body={"detail": "the key was used for another query"})
            return known[1]
        same = [released for asked, released in stored.released if reuse and asked == query]
        if same and self.mistake != "reuse answered anew":
            return same[0]
        released = self._answer(stored, query, analyst)
        stored.answers[analyst, key] = (query, released)
        stored.released.append((query, released))
        return released

    def ask_together(
        self, dataset: str, queries: Sequence[Query], *, analyst: int, keys: Sequence[str]
    ) -> list[Released]:
        people = self.stored[dataset].people.values()
        before = [person.spent for person in people]
        found = []
        for query, key in zip(queries, keys, strict=True):
            for person, spent in zip(people, before, strict=True):
                person.spent_before = spent
            found.append(self.ask(dataset, query, analyst=analyst, key=key))
        return found

    def accounts(self, dataset: str) -> Mapping[str, Account]:
        people = self.stored[dataset].people
        return {key: self._account(person) for key, person in people.items() if not person.is_erased}

    def _account(self, person: Person) -> Account:
        spent = round(person.spent_float * UNIT) if self.mistake == "float sums" else person.spent
        return Account(spent, person.limit, person.charged, person.left_out)

    def ledger(self, dataset: str) -> Mapping[int, tuple[int, int]]:
        return self.stored[dataset].ledger

    def own_account(self, dataset: str, person: str) -> tuple[Account, Receipts]:
        found = self.stored[dataset].people[person]
        return self._account(found), found.receipts

    def lower(self, dataset: str, limits: Mapping[str, int]) -> None:
        for key, units in limits.items():
            self.stored[dataset].people[key].limit = units

    def set_paused(self, dataset: str, people: Sequence[str], *, is_paused: bool) -> None:
        for key in people:
            self.stored[dataset].people[key].is_paused = is_paused and self.mistake != "pauses ignored"

    def erase(self, dataset: str, people: Sequence[str]) -> None:
        for key in people:
            person = self.stored[dataset].people[key]
            person.is_erased = True
            person.spent -= person.last_charge if self.mistake == "refund at erasure" else 0
            if self.mistake != "erased records counted":
                person.value, person.rows = None, []

    def correct(self, dataset: str, values: Values) -> None:
        for key, value in values:
            person = self.stored[dataset].people[key]
            person.value = value
            person.spent -= person.last_charge if self.mistake == "refund at correction" else 0

    def close(self, dataset: str) -> None:
        del self.stored[dataset]

    def _answer(self, stored: Stored, query: Query, analyst: int) -> Released:
        """Filter, charge, add, and draw the noise."""
        grid = 2.0**-8 if query.rule == "clip" else 1.0
        sequence = len(stored.ledger) + 1
        weights: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by value, coordinates with their weights
        for coordinate, entries in enumerate(query.coordinates):
            for value, weight in entries.items():
                weights[value].append((coordinate, int(weight / grid)))
        sums, counts = np.zeros(len(query.coordinates)), Counter[str]()
        for person in stored.people.values():
            if self.mistake == "drop reset by a checkpoint" and sequence % 8 == 0:
                person.is_out = False
            values = person.rows if query.table == "rows" else [person.value]
            rows = [dict(weights.get(value, ())) for value in values if value is not None]
            counted, units, outcome = self._decide(stored, person, rows, query, grid, analyst)
            counts[outcome] += 1
            person.receipts.append((sequence, outcome, units))
            for coordinate, steps in counted.items():
                sums[coordinate] += steps * grid
        stored.ledger[sequence] = (counts["charged"] + counts["shortened"], counts["left_out"])
        noises = LAPLACES if isinstance(query.law, Laplace) else GAUSSIANS
        noise = noises.get(self.mistake, noises[""])(self.rng, sums.size, query.law.size / grid)
        size = query.law.size * (2 if self.mistake == "another noise than was asked for" else 1)
        return Released(sequence=sequence, values=sums + noise * grid, size=size, grid=grid)

    def _decide(
        self, stored: Stored, person: Person, rows: list[dict[int, int]], query: Query, grid: float, analyst: int
    ) -> tuple[Mapping[int, int], int, str]:
        """The vector that is added, its charge, and the outcome."""
        vector = Counter[int]()
        for row in rows:
            vector.update(row)
        norm = _norm(vector)
        if norm == 0 or (person.is_paused and stored.is_dropping):
            return {}, 0, "untouched"
        if self.mistake == "sum of row norms":
            norm = sum(map(_norm, rows))
        counted: Mapping[int, int] = vector
        charge = self._charge(norm, query.law, grid)
        room = ROOMS.get(self.mistake, ROOMS[""])(person, analyst)
        room = 0 if person.is_paused or (stored.is_dropping and person.is_out) else room
        if charge > room and query.rule == "clip":
            counted, charge, room = self._shortened(vector, charge, room, query.law, grid)
        if charge > room:
            person.left_out += 1
            person.is_out = True
            person.spent += charge if self.mistake == "left out and charged" else 0
            return (vector if self.mistake == "left out and added" else {}), 0, "left_out"
        person.spent_before = person.spent if self.mistake == "stale spent total" else person.spent + charge
        person.spent += charge
        person.spent_by[analyst] += charge
        person.spent_float += norm / (2 * (query.law.size / grid) ** 2)
        person.last_charge = charge
        person.charged += 1
        return counted, charge, "charged" if counted == vector else "shortened"

    def _shortened(
        self, vector: Mapping[int, int], charge: int, room: int, law: Law, grid: float
    ) -> tuple[Mapping[int, int], int, int]:
        """The part of a vector that fits, its charge, and the room to pay it from."""
        ((coordinate, length),) = vector.items()
        most = min(isqrt(floor(max(room, 0) * 2 * Fraction(law.size / grid) ** 2 / UNIT)), abs(length))
        if most == 0:
            return {}, room + 1, room
        counted = {coordinate: most if length > 0 else -most}
        match self.mistake:
            case "charge of the unshortened vector":
                return counted, charge, charge
            case "shortened to a half of what is charged":
                return {coordinate: counted[coordinate] // 2}, self._charge(most**2, law, grid), room
        return counted, self._charge(most**2, law, grid), room

    def _charge(self, norm: int, law: Law, grid: float) -> int:
        """The charge of a squared norm in steps; under Laplace noise every vector is one step long."""
        sigma = Fraction(law.size / grid)
        exact = Fraction(norm) * UNIT / (2 * sigma**2)
        if isinstance(law, Laplace) and self.mistake != "Laplace noise priced as a Gaussian":
            exact = Fraction(laplace_price(law.accounting, 1 / law.size)) * UNIT
        return CHARGES.get(self.mistake, CHARGES[""])(exact, sigma)


ROOMS: Mapping[str, Callable[[Person, int], int]] = {
    "": lambda person, _: person.limit - person.spent,
    "stale spent total": lambda person, _: person.limit - person.spent_before,
    "batches checked before they are charged": lambda person, _: person.limit - person.spent_before,
    "one ledger for each analyst": lambda person, analyst: person.limit - person.spent_by[analyst],
    "float sums": lambda person, _: floor((person.limit / UNIT - person.spent_float) * UNIT),
}
CHARGES: Mapping[str, Callable[[Fraction, Fraction], int]] = {
    "": lambda exact, _: ceil(exact),
    "sigma for sigma^2": lambda exact, sigma: ceil(exact * sigma),
    "missing 1/2": lambda exact, _: ceil(2 * exact),
    "charge rounded down": lambda exact, _: floor(exact),
    "charge for half the noise": lambda exact, _: ceil(exact / 2),
    "a price two ten-thousandths too large": lambda exact, _: ceil(exact * Fraction(10_002, 10_000)),
}
Noise = Callable[[np.random.Generator, int, float], Doubles]
GAUSSIANS: Mapping[str, Noise] = {
    "": lambda rng, count, sigma: np.rint(sigma * rng.standard_normal(count)),
    "noise reused": lambda _, count, sigma: np.rint(sigma * np.random.default_rng(0).standard_normal(count)),
    "noise 3 % too small": lambda rng, count, sigma: np.rint(0.97 * sigma * rng.standard_normal(count)),
    "noise of a uniform law": lambda rng, count, sigma: np.rint(sigma * rng.uniform(-(3**0.5), 3**0.5, count)),
    "noise added in floats": lambda rng, count, sigma: sigma * rng.standard_normal(count),
    "one noise for all coordinates": lambda rng, count, sigma: np.full(count, np.rint(sigma * rng.standard_normal())),
}
LAPLACES: Mapping[str, Noise] = {
    "": lambda rng, count, scale: np.rint(rng.laplace(0.0, scale, count)),
    "half the Laplace noise": lambda rng, count, scale: np.rint(rng.laplace(0.0, scale / 2, count)),
    "discrete Laplace noise": lambda rng, count, scale: np.diff(rng.geometric(1 - exp(-1 / scale), (2, count)), axis=0)[
        0
    ].astype(np.float64),
}


def _norm(vector: Mapping[int, int]) -> int:
    return sum(steps**2 for steps in vector.values())


def laplace_price(accounting: Accounting, t: float) -> float:
    """The price of a number of t scales, in doubles and rounded up by half of what is allowed."""
    order, half = accounting.order, NormalDist().inv_cdf(1 - exp(-t / 2) / 2)
    moment = order * exp((order - 1) * t) + (order - 1) * exp(-order * t)
    match accounting.kind:
        case "pure":
            return t
        case "zcdp":
            price = t + expm1(-t)
        case "rdp":
            price = log(moment / (2 * order - 1)) / (order - 1) / order
        case "gdp":
            price = 2 * half**2
    return price * (1 + 5e-5)


def played(
    mistake: str = "", *, victims: int = 240, seed: int = 4, rule: str = "skip", kind: str | None = None
) -> Game:
    """A whole play against the service, under a rule or an accounting."""
    rng, service = np.random.default_rng(seed), FakeService(mistake=mistake)
    drawn = drawn_victims(victims, rng, ADVERSARIES if kind is None else ASKERS)
    accounting = OF_RULES if kind is None else ACCOUNTINGS[kind]
    game = Game(service, "d", drawn, rng, rule=rule, accounting=accounting)
    game.play(schedule() if kind is None else turns(offered(accounting)))
    assert service.stored == {}
    return game
