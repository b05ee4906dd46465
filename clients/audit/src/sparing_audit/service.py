"""The audit's view of a service: what the audit may ask of it, by whatever transport.

`remote` speaks to a real service through its Python client. The tests have a service in the same process that makes
mistakes on purpose.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from sparing import APIStatusError, Dataset
from sparing_audit.accountings import Accounting
from sparing_audit.laws import Doubles
from sparing_audit.noise import Law

Refused = APIStatusError
Table = Literal["people", "rows"]
Values = Sequence[tuple[str, int | None]]
"""People by their keys, each with a value of the column `coordinate`. None is NULL, and stands for a blank record."""

Receipts = Sequence[tuple[int, str, int]]
"""For each query its sequence, the outcome and the charge in units."""

ANALYSTS: Final = 2
"""The number of analysts as whom the audit asks, numbered from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The rules of datasets and of queries, the accountings and the mechanisms that the service's document lists."""

    datasets: tuple[str, ...]
    queries: tuple[str, ...]
    accountings: tuple[str, ...] = ()
    mechanisms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query whose answer has, for each number, a weighted sum of values of the column `coordinate`.

    With Laplace noise it is a histogram of the table of people: each number counts one value.
    """

    coordinates: tuple[Mapping[int, int], ...]
    law: Law  # in the unit of the weights
    table: Table = "people"
    rule: str | None = None  # None: the dataset's


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """An answer. `values` (d,) are in the unit of the weights, as whole multiples of `grid`."""

    sequence: int
    values: Doubles
    size: float  # the noise as it is stated: sigma, or the scale of Laplace noise
    grid: float


@dataclass(frozen=True, slots=True)
class Account:
    """One account, in units."""

    spent: int
    limit: int
    charged: int  # queries that charged it
    left_out: int  # queries that left it out


class Service(Protocol):
    """A service under audit. Every method but `offered` raises Refused if the service does not accept the request.

    People are named by their keys. The datasets belong to the audit.
    """

    def offered(self) -> Offered:
        """The rules, accountings and mechanisms that the service's own document lists."""

    def register(self, dataset: str, *, rule: str, people: int, accounting: Accounting) -> Dataset:
        """Register a dataset with the budget of an accounting.

        It has a table of people and a table of rows. The column `coordinate` of each has twice as many values as there
        are people.
        """

    def upload(self, dataset: str, table: Table, values: Values) -> None:
        """Add people, or rows for people."""

    def ask(self, dataset: str, query: Query, *, analyst: int, key: str, reuse: bool = False) -> Released:
        """Ask a query as one of the analysts, under an idempotency key."""

    def ask_together(
        self, dataset: str, queries: Sequence[Query], *, analyst: int, keys: Sequence[str]
    ) -> list[Released]:
        """Ask several queries in one batch, without reuse."""

    def accounts(self, dataset: str) -> Mapping[str, Account]:
        """Every account except those of erased people."""

    def ledger(self, dataset: str) -> Mapping[int, tuple[int, int]]:
        """The numbers of individuals that each query charged and left out, by sequence."""

    def own_account(self, dataset: str, person: str) -> tuple[Account, Receipts]:
        """The account and the receipts that a person's own key reads."""

    def lower(self, dataset: str, limits: Mapping[str, int]) -> None:
        """Have people lower their own limits to these, in units."""

    def set_paused(self, dataset: str, people: Sequence[str], *, is_paused: bool) -> None:
        """Have people pause, or end their pauses."""

    def erase(self, dataset: str, people: Sequence[str]) -> None:
        """Erase people's records."""

    def correct(self, dataset: str, values: Values) -> None:
        """Put new coordinates into people's records."""

    def close(self, dataset: str) -> None:
        """End the audit's use of a dataset."""
