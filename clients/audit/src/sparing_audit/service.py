"""The audit's view of a service: what it may ask of one, apart from how that is transported.

`remote` speaks to a real service through its Python client; the tests have one in the same process that makes mistakes
on purpose.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ANALYSTS",
    "UNITS_PER_RHO",
    "Account",
    "Description",
    "Doubles",
    "HistogramQuery",
    "LedgerEntry",
    "MatrixQuery",
    "Offered",
    "OwnAccount",
    "OwnReceipt",
    "Query",
    "Refused",
    "Registration",
    "Released",
    "Service",
    "Table",
]

Doubles = NDArray[np.float64]
Table = Literal["people", "rows"]

UNITS_PER_RHO = 2**40
"""The ledger's unit, as the service documents it: of rho, or of another accounting's amount."""
ANALYSTS = 2
"""How many analysts the audit asks as, numbered from 0."""


class Refused(Exception):
    """The service did not accept a request; the message is its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The rules that a service offers, as its own document says: for datasets, and for single queries.

    With them the kinds of its accountings, and the mechanisms of its queries.
    """

    datasets: tuple[str, ...]
    queries: tuple[str, ...]
    accountings: tuple[str, ...] = ()
    mechanisms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A dataset of the audit: a table of people, one of rows, each with a column `coordinate`.

    A person's `coordinate` is one of `values` categories or NULL; each row's is one of them.
    """

    dataset: str
    rule: str
    rho: float  # the budget, in the amount of the accounting
    people: int
    values: int
    accounting: str | Mapping[str, object] | None = None  # None: the service's own choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A dataset as its description has it: the accounting as JSON, and the amount in which charges are told."""

    accounting: object
    unit: str
    budget_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixQuery:
    """One sparse matrix: for each coordinate of the answer the weights of some values of the column `coordinate`."""

    table: Table
    coordinates: tuple[Mapping[int, int], ...]
    sigma: float
    rule: str | None = None  # None: the dataset's


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramQuery:
    """A count for each of some values of the column `coordinate` of the table of people, with Laplace noise."""

    values: tuple[int, ...]
    scale: float


Query = MatrixQuery | HistogramQuery


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """An answer. `values` (d,) are in the unit of the weights, whole multiples of `grid`."""

    id: str
    sequence: int
    values: Doubles
    sigma: float
    grid: float
    scale: float | None = None  # of Laplace noise
    is_reused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account as the curator sees it, in units."""

    spent: int
    limit: int
    charged: int  # queries that charged it
    left_out: int  # queries that left it out


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """How many individuals a query charged and left out."""

    sequence: int
    charged: int
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnReceipt:
    """One query as an individual is told about it, the charge in units."""

    sequence: int
    outcome: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAccount:
    """An account as the individual itself reads it."""

    account: Account
    receipts: tuple[OwnReceipt, ...] = field(default=())


class Service(Protocol):
    """A service under audit. Every method but `offered` raises Refused where the service does not accept the request.

    People are called by their keys. The datasets are the audit's own.
    """

    def offered(self) -> Offered:
        """The rules, accountings and mechanisms that the service's own document lists."""

    def register(self, registration: Registration) -> int:
        """Register a dataset, and give its budget in units."""

    def described(self, dataset: str) -> Description:
        """A dataset as the service describes it."""

    def upload_people(self, dataset: str, values: Mapping[str, int | None]) -> None:
        """Add people with their coordinates; None is NULL, that is a blank record."""

    def upload_rows(self, dataset: str, rows: Sequence[tuple[str, int]]) -> None:
        """Add rows of people: pairs of a key and a coordinate."""

    def ask(self, dataset: str, query: Query, *, analyst: int, key: str, reuse: bool) -> Released:
        """Ask as one of the analysts under an idempotency key."""

    def ask_together(
        self, dataset: str, queries: Sequence[MatrixQuery], *, analyst: int, keys: Sequence[str]
    ) -> list[Released]:
        """Ask several queries in one batch, without reuse."""

    def accounts(self, dataset: str) -> Mapping[str, Account]:
        """Every account but those of erased people."""

    def ledger(self, dataset: str) -> list[LedgerEntry]:
        """The entries, in any order."""

    def own_account(self, dataset: str, person: str) -> OwnAccount:
        """The account and the receipts that a person's own key reads."""

    def lower(self, dataset: str, limits: Mapping[str, int]) -> None:
        """Have people lower their own limits, to so many units."""

    def pause(self, dataset: str, people: Sequence[str]) -> None:
        """Have people pause."""

    def resume(self, dataset: str, people: Sequence[str]) -> None:
        """Have people end their pauses."""

    def erase(self, dataset: str, people: Sequence[str]) -> None:
        """Erase people's records."""

    def correct(self, dataset: str, values: Mapping[str, int | None]) -> None:
        """Put other coordinates into people's records."""

    def close(self, dataset: str) -> None:
        """End the audit's use of a dataset."""
