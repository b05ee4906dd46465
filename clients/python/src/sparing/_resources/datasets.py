"""Datasets, for curators: register, fill, and watch the spending."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from sparing._chain import Chain, chain_of
from sparing._constants import PAGE_SIZE
from sparing._decode import read
from sparing._files import Source, content_of
from sparing._models import ActRow, BudgetRow, BudgetSummary, Dataset, LedgerRow, UploadReport
from sparing._retry import Repeat
from sparing._sender import Request, Sender, path

__all__ = ["Datasets"]

Number = int | float | Decimal | str


class Datasets:
    """`client.datasets`: analysts can `get` and `list`; everything else needs a curator's key."""

    def __init__(self, sender: Sender) -> None:
        """Send through `sender`."""
        self._sender = sender

    def create(
        self,
        *,
        name: str,
        tables: Mapping[str, object],
        capacity: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        limit_floor_rho: Number | None = None,
        rule: str = "skip",
    ) -> Dataset:
        """Register a dataset: its public schema and the guarantee for each individual.

        Args:
            name: lower-case letters, digits and hyphens.
            tables: one table of individuals and any number of event tables, as in the service's documentation.
            capacity: a public bound on the number of individuals, never read off the data; the service has a default.
            epsilon: with `delta`, the differential privacy of everything ever answered, for each individual.
            delta: see `epsilon`.
            rho: the same guarantee as zero-concentrated differential privacy.
            limit_floor_rho: the smallest limit that a `budget` column will hold.
            rule: the fate of individuals that cannot afford a query.

        Raises:
            ConflictError: the name is taken.
            ValueError: not exactly one form of guarantee is given.
        """
        body: dict[str, object] = {
            "name": name,
            "guarantee": _guarantee(epsilon, delta, rho),
            "tables": tables,
            "rule": rule,
        }
        if capacity is not None:
            body["capacity"] = capacity
        if limit_floor_rho is not None:
            body["limit_floor_rho"] = str(limit_floor_rho)
        return read(Dataset, self._sender.post(path("datasets"), body))

    def list(self) -> Iterator[Dataset]:
        """Every dataset this key may see."""
        return (read(Dataset, item) for item in self._sender.pages(path("datasets")))

    def get(self, *, dataset: str) -> Dataset:
        """One dataset's public schema; with its counts for curators."""
        return read(Dataset, self._sender.get(path("datasets", dataset)))

    def upload(self, *, dataset: str, table: str, file: Source, content_type: str | None = None) -> UploadReport:
        """Append rows to a table, all or none.

        Args:
            dataset: the dataset's name.
            table: the table's name in the schema.
            file: a path, bytes or an open binary file, plain or gzipped: CSV with a header, NDJSON, Parquet, Arrow.
            content_type: by default inferred from the path's suffix or the first bytes.

        A connection that breaks half-way is not tried again, because the rows may have been stored: look at
        `get(...).rows` first.
        """
        content, inferred = content_of(file)
        request = Request(
            method="POST",
            path=path("datasets", dataset, "tables", table, "rows"),
            repeat=Repeat.ONCE,
            content=content,
            content_type=content_type or inferred,
        )
        return read(UploadReport, self._sender.send(request))

    def budgets(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Iterator[BudgetRow]:
        """Every individual's account, fetched page by page as they are consumed."""
        pages = self._sender.pages(path("datasets", dataset, "budgets"), limit=page_size)
        return (read(BudgetRow, item) for item in pages)

    def budget_summary(self, *, dataset: str) -> BudgetSummary:
        """Every individual's budgets in a histogram and a few quantiles."""
        return read(BudgetSummary, self._sender.get(path("datasets", dataset, "budgets", "summary")))

    def ledger(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Iterator[LedgerRow]:
        """Every answered query, newest first, with the numbers of individuals charged and left out."""
        pages = self._sender.pages(path("datasets", dataset, "ledger"), limit=page_size)
        return (read(LedgerRow, item) for item in pages)

    def audit(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Chain:
        """Read the whole ledger and check its chain of hashes without trusting the service, for auditors and curators.

        Raises:
            APIReplyError: the service's version does not list the parts of its hashes.
        """
        return chain_of(self._sender.pages(path("datasets", dataset, "ledger"), limit=page_size))

    def acts(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Iterator[ActRow]:
        """The acts on the dataset, newest first: uploads, lowered limits, erasures, epochs."""
        pages = self._sender.pages(path("datasets", dataset, "acts"), limit=page_size)
        return (read(ActRow, item) for item in pages)

    def open_epoch(self, *, dataset: str) -> int:
        """Open the next epoch: from now on, queries are answered afresh and charged. Returns its number."""
        reply = self._sender.post(path("datasets", dataset, "epochs"))
        return read(_Epoch, reply).epoch

    def erase(self, *, dataset: str, individual: str) -> None:
        """Erase an individual's record. Its spent total stays, so that it cannot be spent twice."""
        where = path("datasets", dataset, "individuals", individual)
        self._sender.send(Request(method="DELETE", path=where, repeat=Repeat.READ))


def _guarantee(epsilon: Number | None, delta: Number | None, rho: Number | None) -> dict[str, str]:
    given = {"epsilon": epsilon, "delta": delta, "rho": rho}
    found = {name: str(value) for name, value in given.items() if value is not None}
    if set(found) not in ({"rho"}, {"epsilon", "delta"}):
        raise ValueError("give epsilon and delta, or rho")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Epoch:
    """The response to opening an epoch."""

    epoch: int
