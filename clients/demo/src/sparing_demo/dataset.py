"""The web-visits data that ships with the demo (its licence and source are in `data/README.md`)."""

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

DATA = Path(__file__).parent / "data"
TEST_PART_FROM = 100_000  # ids of the test part start above this (data/README.md)


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """One area of the web site; all of it is public."""

    id: str
    title: str
    path: str


@dataclass(frozen=True, kw_only=True)
class WebVisits:
    """The whole data set, as the curator holds it."""

    areas: tuple[Area, ...]
    visits: tuple[tuple[str, str], ...]  # (person, area), each pair once
    visits_file: Path  # the same as CSV, packed

    @cached_property
    def people(self) -> tuple[str, ...]:
        """All people, in order of first appearance."""
        return tuple(dict.fromkeys(person for person, _ in self.visits))

    @cached_property
    def visitors(self) -> Counter[str]:
        """The true answer for each area: the number of people that visited it."""
        return Counter(area for _, area in self.visits)

    @cached_property
    def areas_visited(self) -> Counter[str]:
        """The number of areas that each person visited."""
        return Counter(person for person, _ in self.visits)

    def people_csv(self) -> bytes:
        """The table of individuals, as CSV."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["person_id", "part"])
        rows.writerows((person, "test" if int(person) > TEST_PART_FROM else "training") for person in self.people)
        return text.getvalue().encode()


def read_web_visits(folder: Path = DATA) -> WebVisits:
    """Read `areas.csv` and `visits.csv.gz`."""
    visits_file = folder / "visits.csv.gz"
    with gzip.open(visits_file, "rt", encoding="utf-8", newline="") as file:
        visits = tuple((row["person_id"], row["area"]) for row in csv.DictReader(file))
    return WebVisits(areas=tuple(_areas(folder / "areas.csv")), visits=visits, visits_file=visits_file)


def _areas(where: Path) -> Iterator[Area]:
    with where.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield Area(id=row["area"], title=row["title"].strip(), path=row["path"])
