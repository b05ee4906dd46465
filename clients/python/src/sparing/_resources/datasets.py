"""Datasets, for curators: register, fill, and watch the spending."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Unpack

from sparing._chain import Chain
from sparing._columns import Columns
from sparing._constants import PAGE_SIZE
from sparing._documents import WrittenQuery
from sparing._files import Source
from sparing._frames import Frame
from sparing._models import (
    ActRow,
    Alarm,
    AnalystRow,
    BudgetRow,
    BudgetSummary,
    Dataset,
    DatasetRow,
    Forecast,
    KeyComparison,
    LedgerRow,
    Receipt,
    RunDivergence,
    SummaryHistory,
    UploadReport,
    Verification,
)
from sparing._query import QueryRequest
from sparing._sender import Sender
from sparing._verbs import datasets
from sparing._verbs.datasets import Number
from sparing._verbs.uploads import PartOptions, SendOptions, upload, upload_parts


class Datasets:
    """`client.datasets`: analysts can `get` and `list`; everything else needs a curator's key."""

    def __init__(self, sender: Sender) -> None:
        """Send through `sender`."""
        self._sender = sender

    def create(  # noqa: PLR0913 - the parts of a registration
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
        accounting: str | Mapping[str, object] | None = None,
        keys: KeyComparison | None = None,
        monitor: Mapping[str, object] | None = None,
    ) -> Dataset:
        """Register a dataset: its public schema and the guarantee for each individual.

        Args:
            name: lower-case letters, digits and hyphens.
            tables: one table of individuals and any number of event tables, as in the service's documentation.
            capacity: a public bound on the number of individuals, not to be read off the data; the service has a
                default.
            epsilon: with `delta`, the differential privacy of everything ever answered, for each individual.
            delta: see `epsilon`.
            rho: the same guarantee as zero-concentrated differential privacy.
            limit_floor_rho: the smallest limit that a `budget` column will hold.
            rule: the rule for individuals that cannot afford a query: "skip" leaves them out of this query, "drop" for
                good.
            accounting: the rule by which charges add up; default: "gdp". Other rules are objects with a `kind`: "zcdp";
                "rdp" with an `order`; or "pure", whose guarantee is `epsilon` alone. "zcdp" and "rdp" may also have the
                `conversion` "simple".
            keys: the comparison of individuals' keys in every table, which never changes. Under "exact", the default, 7
                and 007 are two individuals, and so are Ada@x.org and ada@x.org. "number" makes the first two one,
                "caseless" the last two, and "uuid" all spellings of a UUID.
            monitor: a continual count of exhausted individuals: `rho`, the reserve kept back from each limit; `ticks`,
                the number of ticks; and `share`, the share of the budget below which an individual counts.

        Raises:
            ConflictError: the name is taken.
            ValueError: not exactly one form of guarantee is given.
        """
        guarantee = {"epsilon": epsilon, "delta": delta, "rho": rho}
        stated = {"capacity": capacity, "limit_floor_rho": limit_floor_rho, "rule": rule, "accounting": accounting}
        stated["keys"] = keys
        return self._sender.run(datasets.create(name, tables, guarantee, monitor, **stated))

    def list(self, *, page_size: int = PAGE_SIZE) -> Iterator[DatasetRow]:
        """Every dataset that this key may see, by name, fetched in pages; `get` also returns a dataset's schema."""
        return self._sender.each(datasets.every(page_size))

    def get(self, *, dataset: str) -> Dataset:
        """One dataset with its public schema; for curators also the numbers of its individuals and rows."""
        return self._sender.run(datasets.one(dataset))

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

        The idempotency key is made before anything is sent, and every try carries it, so that the service stores the
        rows once even if a reply is lost. If all tries fail, the exception carries the key: upload the same bytes with
        `idempotency_key=error.idempotency_key`.

        Args:
            dataset: the dataset's name.
            table: the table's name in the schema.
            data: one of three. Columns, sent as Parquet: a data frame of pandas, polars or pyarrow, another object that
                gives an Arrow stream, or a mapping from column to values. Rows: mappings from column to value, or the
                rows of a cursor. Or a file, plain or gzipped, as a path, bytes or an open file: CSV with a header,
                NDJSON, Parquet or Arrow.
            file: the same as `data`.
            columns: the declared name for each column that has another name in the data, for example
                `{"Customer ID": "person_id"}`; None leaves a column out. An index of pandas is left out unless it is
                named here.
            options: `content_type`, by default inferred from the path's suffix or the first bytes; `delimiter` of CSV
                (`,`, `;`, `|` or a tab), and `decimal=","` where its numbers have commas; `dry_run=True` to check
                everything and store nothing; `accept`, columns to store even if more than a twentieth of their values
                are not as declared; `rows_over_limit="truncate"` to have each individual keep as many rows as the
                schema allows; `unknown_individuals="drop"` to leave out events whose key belongs to no individual;
                `duplicates="drop"` or `"reject"` for rows with the key and the stored values of an earlier row;
                `idempotency_key`, 1 to 128 printable ASCII characters naming this upload for ever; `progress`, a
                function that is called with the number of bytes sent and of all bytes (None if unknown). An
                asynchronous client calls it in the thread of the event loop, and reads the data in other threads: do
                not change a frame until the upload has ended.

        Raises:
            InvalidRequestError: rows are wrong: `errors` name the first of them, and `rows` counts them all. Or the key
                was used for another upload.
            ColumnsError: the data does not have the declared columns; a ValueError.
            ValueError: a value, a column or a file cannot be sent; nothing was sent then.
            TypeError: `data` is of no kind that is listed above.
            ImportError: the frame needs pyarrow, which is not installed.
        """
        return self._sender.run(upload(dataset, table, data, file, columns, options))

    def upload_parts(
        self,
        *,
        dataset: str,
        table: str,
        data: Frame | Source | None = None,
        files: Iterable[Source] = (),
        columns: Columns | None = None,
        **options: Unpack[PartOptions],
    ) -> UploadReport:
        """Append many rows to a table in parts, one upload after the other, each all or none.

        Use it for more rows than one upload takes, and for uploads that last hours. Every part has an idempotency key
        of its own, `run-0`, `run-1` and so on. After a failure, repeat the call with the same `run` and the same data:
        stored parts are not stored again. The exception carries the key of the part that failed.

        Args:
            dataset: the dataset's name.
            table: the table's name in the schema.
            data: a data frame, a path, bytes or an open file as `upload` takes them; read as parts are sent.
            files: several files to be read in this order; instead of `data`.
            columns: as in `upload`.
            options: `rows` of a part, a million by default (another number makes other parts, and needs another `run`);
                `run`, the beginning of the keys, up to 100 printable ASCII characters, random by default; `progress`, a
                function that is called with the numbers of stored parts and of the rows in them; and `content_type`,
                `delimiter`, `decimal`, `accept`, `dry_run`, `rows_over_limit`, `unknown_individuals` and `duplicates`
                as in `upload`, except that repeated rows are only found within a part.

        Returns:
            The sums of all reports.

        Raises:
            InvalidRequestError: rows of a part are wrong; the parts before it are stored.
            ColumnsError: the data does not have the declared columns.
            ImportError: cutting Parquet or Arrow needs pyarrow, which is not installed.
        """
        return self._sender.run(upload_parts(dataset, table, data, files, columns, options))

    def budgets(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Iterator[BudgetRow]:
        """Every individual's account, fetched page by page as the accounts are consumed."""
        return self._sender.each(datasets.budgets(dataset, page_size))

    def budget_summary(self, *, dataset: str) -> BudgetSummary:
        """The remaining budgets of all individuals, as a histogram and a few quantiles."""
        return self._sender.run(datasets.budget_summary(dataset))

    def budget_history(self, *, dataset: str) -> SummaryHistory:
        """The budget summary at earlier sequences, oldest first; points are thinned out as the history grows."""
        return self._sender.run(datasets.budget_history(dataset))

    def export_budgets(self, *, dataset: str, form: Literal["csv", "parquet"] = "csv") -> bytes:
        """Every individual's account as the bytes of one file."""
        return self._sender.run(datasets.export_budgets(dataset, form))

    def forecast(self, question: QueryRequest | WrittenQuery) -> Forecast:
        """The number of further queries like this one that the touched individuals can pay for; charges nothing."""
        return self._sender.run(datasets.forecast(question))

    def alarm(self, *, dataset: str) -> Alarm:
        """The share at which the alarm rings, if one is set, and the sequence at which it rang, if it did."""
        return self._sender.run(datasets.alarm(dataset))

    def set_alarm(self, *, dataset: str, share: float | None) -> Alarm:
        """Let the alarm ring once this share of individuals cannot pay for another typical query; None removes it."""
        return self._sender.run(datasets.set_alarm(dataset, share))

    def verify(self, *, dataset: str) -> Verification:
        """Begin to verify the ledger, unless a verification is under way; `verification` returns the outcome."""
        return self._sender.run(datasets.verify(dataset))

    def verification(self, *, dataset: str) -> Verification:
        """The last or current verification of the ledger by the process that answers this request."""
        return self._sender.run(datasets.verification(dataset))

    def erasure_requests(self, *, dataset: str) -> tuple[str, ...]:
        """The keys of the individuals that ask to be erased, in the order in which they asked."""
        return self._sender.run(datasets.erasure_requests(dataset))

    def analysts(self, *, dataset: str) -> tuple[AnalystRow, ...]:
        """The analysts that may query the dataset, each with its allowance and the sum of its worst cases so far."""
        return self._sender.run(datasets.analysts(dataset))

    def divergence(self, *, dataset: str, individual: str | int) -> RunDivergence:
        """A measure of how well the answers so far tell the dataset with one record from the dataset without it.

        A diagnostic for curators: it depends on the record, is not a guarantee, and must not leave the curator.
        """
        return self._sender.run(datasets.divergence(dataset, individual))

    def receipts(self, *, dataset: str, individual: str | int, page_size: int = PAGE_SIZE) -> Iterator[Receipt]:
        """The receipts of one individual, one for each query, newest first; pages are fetched as they are consumed."""
        return self._sender.each(datasets.receipts(dataset, individual, page_size))

    def ledger(
        self, *, dataset: str, analyst: str | None = None, search: str | None = None, page_size: int = PAGE_SIZE
    ) -> Iterator[LedgerRow]:
        """Every answered query, newest first; curators also see the numbers of individuals charged and left out.

        `analyst`, an id, keeps the queries of one analyst; `search` keeps the queries whose canonical text has all of
        its words.
        """
        return self._sender.each(datasets.ledger(dataset, analyst, search, page_size))

    def audit(self, *, dataset: str, kept: str | None = None, page_size: int = PAGE_SIZE) -> Chain:
        """Read the whole ledger and check its chain of hashes without trusting the service, for auditors and curators.

        Args:
            dataset: the dataset's name.
            kept: the `hash` of an earlier check; `kept_at` of the result is the sequence of the row with this hash.
            page_size: the number of rows that are read at a time.

        Raises:
            APIReplyError: the service's version does not list the parts of its hashes.
        """
        return self._sender.run(datasets.audit(dataset, kept, page_size))

    def account(self, *, dataset: str, individual: str | int) -> BudgetRow:
        """One individual's account, by its key."""
        return self._sender.run(datasets.account(dataset, individual))

    def record(self, *, dataset: str, individual: str | int) -> Mapping[str, object]:
        """One individual's record as the service holds it: by table, the number of rows and the rows."""
        return self._sender.run(datasets.record(dataset, individual))

    def acts(self, *, dataset: str, page_size: int = PAGE_SIZE) -> Iterator[ActRow]:
        """The acts on the dataset, newest first: uploads, lowered limits, erasures, epochs."""
        return self._sender.each(datasets.acts(dataset, page_size))

    def open_epoch(self, *, dataset: str) -> int:
        """Open the next epoch: from now on, queries are answered afresh and charged. Returns its number."""
        return self._sender.run(datasets.open_epoch(dataset))

    def extend(
        self, *, dataset: str, tables: Mapping[str, object] | None = None, capacity: int | None = None
    ) -> Dataset:
        """Add categories, columns or tables, or raise a capacity; a public act, which opens a new epoch.

        Args:
            dataset: the dataset's name.
            tables: all tables as they shall be: the present ones with their additions, and new ones.
            capacity: the new bound on the number of individuals, not below the old one.

        Raises:
            InvalidRequestError: the new tables remove or change something; `errors` name each place.
        """
        return self._sender.run(datasets.extend(dataset, tables, capacity))

    def correct(self, *, dataset: str, individual: str | int, values: Mapping[str, object]) -> UploadReport:
        """Replace values in an individual's record, by column; the individual's events and account do not change."""
        return self._sender.run(datasets.correct(dataset, individual, values))

    def archive(self, *, dataset: str, rows: Literal["keep", "delete"]) -> Dataset:
        """End all queries and uploads for good, and keep or delete the rows. The ledger and the accounts are kept."""
        return self._sender.run(datasets.archive(dataset, rows))

    def delete(self, *, dataset: str) -> None:
        """Delete a dataset that never answered a query, with its rows and the API keys that only serve this dataset.

        Raises:
            ConflictError: the dataset has answered a query; `archive` it instead.
        """
        self._sender.run(datasets.remove(dataset))

    def erase(self, *, dataset: str, individual: str | int) -> None:
        """Erase an individual's record. The spent total stays, so that the budget cannot be spent twice."""
        self._sender.run(datasets.erase(dataset, individual))
