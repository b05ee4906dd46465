"""A service in the audit's own process, right by default, that makes one of many mistakes on purpose.

It is as small as a filter can be, and written without looking at the audit's: what the audit finds in it, it finds from
the answers and accounts alone.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, exp, expm1, floor, isqrt, log
from statistics import NormalDist

import numpy as np

from sparing_audit.service import (
    Account,
    Description,
    Doubles,
    HistogramQuery,
    LedgerEntry,
    MatrixQuery,
    Offered,
    OwnAccount,
    OwnReceipt,
    Query,
    Refused,
    Registration,
    Released,
)

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
    receipts: list[OwnReceipt] = field(default_factory=list)


@dataclass
class Stored:
    """A dataset."""

    registration: Registration
    people: dict[str, Person] = field(default_factory=dict)
    by_value: dict[str, dict[int, list[str]]] = field(default_factory=lambda: {"people": {}, "rows": {}})
    ledger: list[LedgerEntry] = field(default_factory=list)
    answers: dict[object, tuple[object, Released]] = field(default_factory=dict)  # by analyst and key
    released: dict[object, Released] = field(default_factory=dict)  # by query


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
        return Offered(
            datasets=self.rules,
            queries=self.query_rules,
            accountings=self.accountings,
            mechanisms=("gaussian", "laplace"),
        )

    def register(self, registration: Registration) -> int:
        self.stored[registration.dataset] = Stored(registration)
        return int(registration.rho * UNIT)

    def described(self, dataset: str) -> Description:
        registration = self.stored[dataset].registration
        kind, order = _accounting(registration)
        document: object = registration.accounting or "gdp"
        if self.mistake == "another accounting":
            document = {"kind": "zcdp"} if kind == "gdp" else "gdp"
        unit = {"pure": "epsilon", "rdp": f"rho at order {order:g}"}.get(kind, "rho")
        return Description(accounting=document, unit=unit, budget_units=int(registration.rho * UNIT))

    def upload_people(self, dataset: str, values: Mapping[str, int | None]) -> None:
        stored = self.stored[dataset]
        for key, value in values.items():
            person = stored.people.setdefault(key, Person(limit=int(stored.registration.rho * UNIT)))
            if person.is_erased and self.mistake == "refund at return":
                person = stored.people[key] = Person(limit=person.limit)
            person.value, person.is_erased = value, False

    def upload_rows(self, dataset: str, rows: Sequence[tuple[str, int]]) -> None:
        for key, value in rows:
            self.stored[dataset].people[key].rows.append(value)

    def ask(self, dataset: str, query: Query, *, analyst: int, key: str, reuse: bool) -> Released:
        stored = self.stored[dataset]
        if isinstance(query, HistogramQuery):
            return self._histogram(stored, query)
        form = (query.table, tuple(tuple(sorted(each.items())) for each in query.coordinates), query.sigma)
        known = stored.answers.get((analyst, key))
        if known is not None and self.mistake != "retries charged again":
            if known[0] != form and self.mistake != "keys good for anything":
                raise Refused("the key was used for another query")
            return known[1]
        if reuse and form in stored.released and self.mistake != "reuse answered anew":
            return stored.released[form]
        released = self._answer(stored, query, analyst)
        stored.answers[analyst, key] = (form, released)
        stored.released[form] = released
        return released

    def ask_together(
        self, dataset: str, queries: Sequence[MatrixQuery], *, analyst: int, keys: Sequence[str]
    ) -> list[Released]:
        before = {key: person.spent for key, person in self.stored[dataset].people.items()}
        found = []
        for query, key in zip(queries, keys, strict=True):
            if self.mistake == "batches checked before they are charged":
                for name, person in self.stored[dataset].people.items():
                    person.spent_before = before[name]
            found.append(self.ask(dataset, query, analyst=analyst, key=key, reuse=False))
        return found

    def accounts(self, dataset: str) -> Mapping[str, Account]:
        people = self.stored[dataset].people
        return {key: self._account(person) for key, person in people.items() if not person.is_erased}

    def _account(self, person: Person) -> Account:
        spent = person.spent
        if self.mistake == "float sums":
            spent = round(person.spent_float * UNIT)
        return Account(spent=spent, limit=person.limit, charged=person.charged, left_out=person.left_out)

    def ledger(self, dataset: str) -> list[LedgerEntry]:
        return list(self.stored[dataset].ledger)

    def own_account(self, dataset: str, person: str) -> OwnAccount:
        found = self.stored[dataset].people[person]
        return OwnAccount(account=self._account(found), receipts=tuple(found.receipts))

    def lower(self, dataset: str, limits: Mapping[str, int]) -> None:
        for key, units in limits.items():
            self.stored[dataset].people[key].limit = units

    def pause(self, dataset: str, people: Sequence[str]) -> None:
        for key in people:
            self.stored[dataset].people[key].is_paused = self.mistake != "pauses ignored"

    def resume(self, dataset: str, people: Sequence[str]) -> None:
        for key in people:
            self.stored[dataset].people[key].is_paused = False

    def erase(self, dataset: str, people: Sequence[str]) -> None:
        for key in people:
            person = self.stored[dataset].people[key]
            person.is_erased = True
            if self.mistake == "refund at erasure":
                person.spent -= person.last_charge
            if self.mistake != "erased records counted":
                person.value, person.rows = None, []

    def correct(self, dataset: str, values: Mapping[str, int | None]) -> None:
        for key, value in values.items():
            person = self.stored[dataset].people[key]
            person.value = value
            if self.mistake == "refund at correction":
                person.spent -= person.last_charge

    def close(self, dataset: str) -> None:
        del self.stored[dataset]

    def _histogram(self, stored: Stored, query: HistogramQuery) -> Released:
        """Filter, charge, count, and draw rounded Laplace noise, one to each listed value."""
        sequence, (kind, order) = len(stored.ledger) + 1, _accounting(stored.registration)
        price = laplace_price(kind, order, 1 / query.scale)
        charge = ceil(price * UNIT * (1 if kind == "pure" else 1 + 5e-5))
        if self.mistake in {"half the price of Laplace noise", "half of every price"}:
            charge = ceil(charge / 2)
        if self.mistake == "Laplace noise priced as a Gaussian":
            charge = ceil(UNIT / (2 * query.scale**2))
        if self.mistake == "a price two ten-thousandths too large":
            charge += charge // 5000
        places = {value: place for place, value in enumerate(query.values)}
        counts, is_dropping = np.zeros(len(places)), stored.registration.rule == "drop"
        charged = left_out = 0
        for person in stored.people.values():
            outcome, units = "untouched", 0
            if person.value in places:
                fits = not (is_dropping and person.is_out) and person.spent + charge <= person.limit
                outcome, units = ("charged", charge) if fits else ("left_out", 0)
                person.spent, person.charged = person.spent + units, person.charged + fits
                person.left_out, person.is_out = person.left_out + (not fits), person.is_out or not fits
                counts[places[person.value]] += fits or self.mistake == "left out and counted"
                charged, left_out = charged + fits, left_out + (not fits)
            person.receipts.append(OwnReceipt(sequence=sequence, outcome=outcome, units=units))
        stored.ledger.append(LedgerEntry(sequence=sequence, charged=charged, left_out=left_out))
        scale = query.scale * (0.5 if self.mistake == "half the Laplace noise" else 1.0)
        noise = np.rint(self.rng.laplace(0.0, scale, len(places)))
        if self.mistake == "discrete Laplace noise":
            tail = 1 - exp(-1 / scale)
            noise = (self.rng.geometric(tail, len(places)) - self.rng.geometric(tail, len(places))).astype(float)
        return Released(
            id=str(sequence),
            sequence=sequence,
            values=counts + noise,
            sigma=query.scale * 2**0.5,
            grid=1.0,
            scale=query.scale,
        )

    def _answer(self, stored: Stored, query: MatrixQuery, analyst: int) -> Released:
        """Filter, charge, add, and draw the noise."""
        grid = 2.0**-8 if query.rule == "clip" else 1.0
        sequence = len(stored.ledger) + 1
        if self.mistake == "drop reset by a checkpoint" and sequence % 8 == 0:
            for person in stored.people.values():
                person.is_out = False
        weights = self._weights(query)
        sums = np.zeros(len(query.coordinates))
        counts = {"charged": 0, "shortened": 0, "left_out": 0, "untouched": 0}
        for person in stored.people.values():
            vector = self._vector(person, query, weights, grid)
            counted, units, outcome = self._decide(stored, person, vector, query, grid, analyst)
            counts[outcome] += 1
            person.receipts.append(OwnReceipt(sequence=sequence, outcome=outcome, units=units))
            for coordinate, steps in counted.items():
                sums[coordinate] += steps * grid
        stored.ledger.append(
            LedgerEntry(sequence=sequence, charged=counts["charged"] + counts["shortened"], left_out=counts["left_out"])
        )
        values = sums + self._noise(sums.size, query.sigma / grid) * grid
        return Released(id=str(sequence), sequence=sequence, values=values, sigma=query.sigma, grid=grid)

    @staticmethod
    def _weights(query: MatrixQuery) -> dict[int, list[tuple[int, int]]]:
        """By value of the column, the coordinates that it adds to, with the weights."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for coordinate, entries in enumerate(query.coordinates):
            for value, weight in entries.items():
                found[value].append((coordinate, weight))
        return found

    @staticmethod
    def _vector(
        person: Person, query: MatrixQuery, weights: Mapping[int, list[tuple[int, int]]], grid: float
    ) -> list[dict[int, int]]:
        """The vector in steps, row by row."""
        values = person.rows if query.table == "rows" else [person.value]
        return [
            {coordinate: int(weight / grid) for coordinate, weight in weights.get(value, ())}
            for value in values
            if value is not None
        ]

    def _decide(
        self, stored: Stored, person: Person, rows: list[dict[int, int]], query: MatrixQuery, grid: float, analyst: int
    ) -> tuple[Mapping[int, int], int, str]:
        """The vector that is added, its charge, and the outcome."""
        vector: dict[int, int] = defaultdict(int)
        for row in rows:
            for coordinate, steps in row.items():
                vector[coordinate] += steps
        norm, is_dropping = _norm(vector), stored.registration.rule == "drop"
        if norm == 0 or (person.is_paused and is_dropping):
            return {}, 0, "untouched"
        if self.mistake == "sum of row norms":
            norm = sum(map(_norm, rows))
        sigma, counted = query.sigma / grid, vector
        charge = self._charge(norm, sigma)
        room = 0 if person.is_paused or (is_dropping and person.is_out) else self._room(person, analyst)
        if charge > room and query.rule == "clip":
            counted, charge, room = self._shortened(vector, charge, room, sigma)
        if charge > room:
            person.left_out += 1
            person.is_out = True
            person.spent += charge if self.mistake == "left out and charged" else 0
            return (vector if self.mistake == "left out and added" else {}), 0, "left_out"
        self._debit(person, charge, norm, sigma, analyst)
        return counted, charge, "charged" if counted == vector else "shortened"

    def _shortened(
        self, vector: Mapping[int, int], charge: int, room: int, sigma: float
    ) -> tuple[dict[int, int], int, int]:
        """The part of a vector that fits, its charge, and the room to pay it from."""
        ((coordinate, length),) = vector.items()
        most = min(isqrt(floor(max(room, 0) * 2 * Fraction(sigma) ** 2 / UNIT)), abs(length))
        if most == 0:
            return {}, room + 1, room
        counted = {coordinate: most if length > 0 else -most}
        match self.mistake:
            case "charge of the unshortened vector":
                return counted, charge, charge
            case "shortened to a half of what is charged":
                return {coordinate: counted[coordinate] // 2}, self._charge(most**2, sigma), room
        return counted, self._charge(most**2, sigma), room

    def _charge(self, norm: int, sigma: float) -> int:
        exact = Fraction(norm) * UNIT / (2 * Fraction(sigma) ** 2)
        match self.mistake:
            case "sigma for sigma^2":
                return ceil(Fraction(norm) * UNIT / (2 * Fraction(sigma)))
            case "missing 1/2":
                return ceil(2 * exact)
            case "charge rounded down":
                return floor(exact)
            case "charge for half the noise" | "half of every price":
                return ceil(exact / 2)
        return ceil(exact)

    def _room(self, person: Person, analyst: int) -> int:
        match self.mistake:
            case "stale spent total" | "batches checked before they are charged":
                return person.limit - person.spent_before
            case "one ledger for each analyst":
                return person.limit - person.spent_by[analyst]
            case "float sums":
                return floor((person.limit / UNIT - person.spent_float) * UNIT)
        return person.limit - person.spent

    def _debit(self, person: Person, charge: int, norm: int, sigma: float, analyst: int) -> None:
        person.spent_before = person.spent if self.mistake == "stale spent total" else person.spent + charge
        person.spent += charge
        person.spent_by[analyst] += charge
        person.spent_float += norm / (2 * sigma**2)
        person.last_charge = charge
        person.charged += 1

    def _noise(self, size: int, sigma: float) -> Doubles:
        match self.mistake:
            case "noise reused":
                return np.rint(sigma * np.random.default_rng(self.seed).standard_normal(size))
            case "noise 3 % too small":
                return np.rint(0.97 * sigma * self.rng.standard_normal(size))
            case "noise of a uniform law":
                return np.rint(sigma * self.rng.uniform(-(3**0.5), 3**0.5, size))
            case "noise added in floats":
                return sigma * self.rng.standard_normal(size)
            case "one noise for all coordinates":
                return np.full(size, np.rint(sigma * self.rng.standard_normal()))
        return np.rint(sigma * self.rng.standard_normal(size))


def _norm(vector: Mapping[int, int]) -> int:
    return sum(steps**2 for steps in vector.values())


def _accounting(registration: Registration) -> tuple[str, float]:
    """The kind, and the order or 1."""
    stated = registration.accounting
    if stated is None or isinstance(stated, str):
        return "gdp", 1.0
    return str(stated["kind"]), float(str(stated.get("order", 1)))


def laplace_price(kind: str, order: float, t: float) -> float:
    """The price of a number of t scales, in doubles."""
    if kind == "pure":
        return t
    if kind == "zcdp":
        return t + expm1(-t)
    if kind == "rdp":
        moment = order * exp((order - 1) * t) + (order - 1) * exp(-order * t)
        return log(moment / (2 * order - 1)) / (order - 1) / order
    half: float = NormalDist().inv_cdf(1 - exp(-t / 2) / 2)
    return 2 * half**2
