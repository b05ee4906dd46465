"""The filter as the paper states it, in Fractions and dictionaries: slow, small, and independent of the service."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

UNIT = Fraction(1, 2**40)


@dataclass
class Person:
    """One individual: age, areas of its events, and an account in whole units."""

    age: int | None
    limit: int
    areas: list[int] = field(default_factory=list)
    spent: int = 0
    present: bool = True
    paused: bool = False


@dataclass
class ReferenceDataset:
    """Individuals by key. `ask` answers a query given as {key: {coordinate: integer}}."""

    budget: int
    people: dict[str, Person] = field(default_factory=dict)

    def join(self, key: str, age: int | None, limit: int | None) -> None:
        """Register an individual, or return one to the account that it has."""
        known = self.people.get(key)
        wanted = self.budget if limit is None else limit
        if known is None:
            self.people[key] = Person(age=age, limit=wanted)
        else:
            known.age, known.areas, known.present = age, [], True
            known.limit = max(known.spent, min(known.limit, wanted))

    def ask(self, vector: "dict[str, dict[int, int]]", sigma: float) -> tuple[dict[str, int], set[str], dict[int, int]]:
        """Algorithm 2: (charges of the active, keys left out, the sum over the active).

        Paused individuals are left out too.
        """
        charges: dict[str, int] = {}
        left_out: set[str] = set()
        total: dict[int, int] = {}
        for key, values in vector.items():
            norm_squared = sum(value * value for value in values.values())
            if norm_squared == 0:
                continue
            charge = ceil(Fraction(norm_squared) / (2 * Fraction(sigma) ** 2) / UNIT)
            person = self.people[key]
            if person.paused or person.spent + charge > person.limit:
                left_out.add(key)
                continue
            person.spent += charge
            charges[key] = charge
            for coordinate, value in values.items():
                total[coordinate] = total.get(coordinate, 0) + value
        return charges, left_out, total

    def vectors(self, kind: str, number: int) -> dict[str, dict[int, int]]:
        """The vectors of one of the machine's three kinds of queries, by key."""
        present = {key: person for key, person in self.people.items() if person.present}
        if kind == "older":
            return {k: {0: 1} for k, p in present.items() if p.age is not None and p.age >= number}
        if kind == "visits":
            return {k: {0: p.areas.count(number)} for k, p in present.items()}
        return {k: {area: p.areas.count(area) for area in set(p.areas)} for k, p in present.items()}
