"""Datasets, for curators: register, fill, and watch the spending."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypedDict, Unpack

from sparing._chain import Chain, chain_of
from sparing._columns import Columns, declared_columns
from sparing._constants import PAGE_SIZE
from sparing._decode import read
from sparing._files import PARQUET, Progress, Source, content_of, opened_of, reported
from sparing._frames import Frame, is_frame, parquet_of
from sparing._models import ActRow, BudgetRow, BudgetSummary, Dataset, LedgerRow, UploadReport
from sparing._renamed import renamed
from sparing._retry import Repeat
from sparing._sender import Content, Request, Sender, path

__all__ = ["Datasets"]

Number = int | float | Decimal | str


class SendOptions(TypedDict, total=False):
    """The options of an upload."""

    content_type: str | None
    delimiter: str
    dry_run: bool
    rows_over_limit: Literal["refuse", "truncate"]
    idempotency_key: str | None
    progress: Progress | None


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

    def upload(
        self,
        *,
        dataset: str,
        table: str,
        data: Frame | Source | None = None,
        file: Source | None = None,
        columns: Columns | None = None,
        **options: Unpack[SendOptions],
    ) -> UploadReport:
        """Append rows to a table, all or none.

        The idempotency key is made before anything is sent, and every try carries it: the service stores the rows once,
        also when a reply is lost. When all tries fail, the exception carries the key: upload the same bytes with
        `idempotency_key=error.idempotency_key`.

        Args:
            dataset: the dataset's name.
            table: the table's name in the schema.
            data: a data frame of pandas, polars or pyarrow (or anything that hands out an Arrow stream), sent as
                Parquet; or a path, bytes or an open binary file, plain or gzipped: CSV with a header, NDJSON, Parquet,
                Arrow.
            file: the same as `data`.
            columns: from names in the data to declared ones, such as `{"Customer ID": "person_id"}`; None as a name
                leaves the column out. An index of pandas is left out unless it is named here.
            options: `content_type`, by default inferred from the path's suffix or the first bytes; `delimiter` of CSV
                (`,`, `;`, `|` or a tab); `dry_run=True` to check everything and store nothing;
                `rows_over_limit="truncate"` to have each individual keep as many rows as the schema allows;
                `idempotency_key`, 1 to 128 printable ASCII characters naming this upload for ever; `progress`, a
                function of the bytes sent and of all bytes (None if unknown).

        Raises:
            InvalidRequestError: rows are wrong; `errors` name the first, `rows` counts all. Or the key was used for
                another upload.
            ColumnsError: the data does not have the declared columns; a ValueError.
            ImportError: the frame is sent as Parquet by pyarrow, which is not installed.
        """
        source = data if file is None else file
        if source is None or (data is not None and file is not None):
            raise ValueError("give data, or file")
        unknown = set(options) - SendOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"upload() takes no {', '.join(sorted(unknown))}")
        content, inferred = self._content(dataset, table, source, columns, options)
        progress, length = options.get("progress"), None
        if progress is not None:
            content, length = reported(content, progress)
        request = Request(
            method="POST",
            path=path("datasets", dataset, "tables", table, "rows"),
            repeat=Repeat.KEYED,
            params=_params(options),
            content=content,
            content_type=options.get("content_type") or inferred,
            content_length=length,
            idempotency_key=options.get("idempotency_key") or str(uuid.uuid4()),
        )
        return read(UploadReport, self._sender.send(request))

    def _content(
        self, dataset: str, table: str, source: Frame | Source, columns: Columns | None, options: SendOptions
    ) -> tuple[Callable[[], Content], str]:
        """How to read the rows under their declared names, and their content type."""
        if is_frame(source):
            content = parquet_of(source, columns or {}, self._declared(dataset, table))
            return lambda: content, PARQUET
        if columns is None:
            return content_of(source)
        opened, inferred, _ = opened_of(source)
        kind = (options.get("content_type") or inferred).partition(";")[0].strip().lower()
        declared = self._declared(dataset, table)
        return renamed(opened, kind, columns, declared, options.get("delimiter", ","))

    def _declared(self, dataset: str, table: str) -> Sequence[str]:
        return declared_columns(self.get(dataset=dataset).tables, table)

    def budgets(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Iterator[BudgetRow]:
        """Every individual's account, fetched page by page as they are consumed."""
        pages = self._sender.pages(path("datasets", dataset, "budgets"), limit=page_size)
        return (read(BudgetRow, item) for item in pages)

    def budget_summary(self, *, dataset: str) -> BudgetSummary:
        """Every individual's budgets in a histogram and a few quantiles."""
        return read(BudgetSummary, self._sender.get(path("datasets", dataset, "budgets", "summary")))

    def ledger(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Iterator[LedgerRow]:
        """Every answered query, newest first; curators also see the numbers of individuals charged and left out."""
        pages = self._sender.pages(path("datasets", dataset, "ledger"), limit=page_size)
        return (read(LedgerRow, item) for item in pages)

    def audit(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Chain:
        """Read the whole ledger and check its chain of hashes without trusting the service, for auditors and curators.

        Raises:
            APIReplyError: the service's version does not list the parts of its hashes.
        """
        return chain_of(self._sender.pages(path("datasets", dataset, "ledger"), limit=page_size))

    def account(self, *, dataset: str, individual: str) -> BudgetRow:
        """One individual's account, by its key."""
        return read(BudgetRow, self._sender.get(path("datasets", dataset, "individuals", individual)))

    def acts(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Iterator[ActRow]:
        """The acts on the dataset, newest first: uploads, lowered limits, erasures, epochs."""
        pages = self._sender.pages(path("datasets", dataset, "acts"), limit=page_size)
        return (read(ActRow, item) for item in pages)

    def open_epoch(self, *, dataset: str) -> int:
        """Open the next epoch: from now on, queries are answered afresh and charged. Returns its number."""
        reply = self._sender.post(path("datasets", dataset, "epochs"))
        return read(_Epoch, reply).epoch

    def extend(
        self, *, dataset: str, tables: Mapping[str, object] | None = None, capacity: int | None = None
    ) -> Dataset:
        """Add categories, columns or tables, or raise a capacity; a public act, which opens a new epoch.

        Args:
            dataset: the dataset's name.
            tables: all tables as they shall be: those that are there, and what is added to them or beside them.
            capacity: the new bound on the number of individuals, not below the old one.

        Raises:
            InvalidRequestError: something is removed or changed; `errors` name each place.
        """
        wishes = {"tables": tables, "capacity": capacity}
        body = {name: value for name, value in wishes.items() if value is not None}
        return read(Dataset, self._sender.patch(path("datasets", dataset), body))

    def correct(self, *, dataset: str, individual: str, values: Mapping[str, object]) -> UploadReport:
        """Put other values, by column, into an individual's record; its events and its account stay as they are."""
        where = path("datasets", dataset, "individuals", individual)
        return read(UploadReport, self._sender.patch(where, dict(values)))

    def archive(self, *, dataset: str, rows: Literal["keep", "delete"]) -> Dataset:
        """End all queries and uploads for good, and keep or delete the rows. The ledger and the accounts are kept."""
        where = path("datasets", dataset, "archive")
        return read(Dataset, self._sender.post(where, {"rows": rows}, repeat=Repeat.READ))

    def delete(self, *, dataset: str) -> None:
        """Delete a dataset that never answered a query, with its rows and the keys that are good for it alone.

        Raises:
            ConflictError: it has answered; `archive` it instead.
        """
        self._sender.send(Request(method="DELETE", path=path("datasets", dataset), repeat=Repeat.ONCE))

    def erase(self, *, dataset: str, individual: str) -> None:
        """Erase an individual's record. Its spent total stays, so that it cannot be spent twice."""
        where = path("datasets", dataset, "individuals", individual)
        self._sender.send(Request(method="DELETE", path=where, repeat=Repeat.READ))


def _params(options: SendOptions) -> dict[str, str | int]:
    """The options that the address states, those with the service's default left out."""
    stated: dict[str, str | int] = {}
    if options.get("delimiter", ",") != ",":
        stated["delimiter"] = options["delimiter"]
    if options.get("dry_run"):
        stated["dry_run"] = "true"
    if options.get("rows_over_limit", "refuse") != "refuse":
        stated["rows_over_limit"] = options["rows_over_limit"]
    return stated


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
