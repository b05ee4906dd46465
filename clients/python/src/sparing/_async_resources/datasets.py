"""Datasets, for curators: register, fill, and watch the spending."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Literal, Unpack

from sparing._async_sender import AsyncSender
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
from sparing._verbs import datasets
from sparing._verbs.datasets import Number
from sparing._verbs.uploads import PartOptions, SendOptions, upload, upload_parts


class AsyncDatasets:
    """`client.datasets`: analysts can `get` and `list`; everything else needs a curator's key."""

    def __init__(self, sender: AsyncSender) -> None:
        """Send through `sender`."""
        self._sender = sender

    async def create(  # noqa: PLR0913 - the parts of a registration
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
            capacity: a public bound on the number of individuals, never read off the data; the service has a default.
            epsilon: with `delta`, the differential privacy of everything ever answered, for each individual.
            delta: see `epsilon`.
            rho: the same guarantee as zero-concentrated differential privacy.
            limit_floor_rho: the smallest limit that a `budget` column will hold.
            rule: the fate of individuals that cannot afford a query.
            accounting: the rule by which charges add up; default: "gdp". Others are objects with a `kind`: "zcdp", and
                "rdp" with an `order`, both of which may have the `conversion` "simple"; and "pure", whose guarantee is
                `epsilon` alone.
            keys: the comparison of individuals' keys in every table, for good. Under "exact", the default, 7 and 007
                are two people, as Ada@x.org and ada@x.org are; "caseless", "number" and "uuid" make them one.
            monitor: a continual count of exhausted individuals: the reserve `rho` by which each limit is lower for
                queries, how many `ticks` there are, and the `share` of the budget below which an individual counts.

        Raises:
            ConflictError: the name is taken.
            ValueError: not exactly one form of guarantee is given.
        """
        guarantee = {"epsilon": epsilon, "delta": delta, "rho": rho}
        stated = {"capacity": capacity, "limit_floor_rho": limit_floor_rho, "rule": rule, "accounting": accounting}
        stated["keys"] = keys
        return await self._sender.run(datasets.create(name, tables, guarantee, monitor, **stated))

    def list(self, *, page_size: int = PAGE_SIZE) -> AsyncIterator[DatasetRow]:
        """Every dataset this key may see, by name, fetched in pages; `get` has the schema of one."""
        return self._sender.each(datasets.every(page_size))

    async def get(self, *, dataset: str) -> Dataset:
        """One dataset's public schema; with its counts for curators."""
        return await self._sender.run(datasets.one(dataset))

    async def upload(
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
                Parquet, or a mapping from column to values; rows as mappings from column to value, also those of a
                cursor; or a path, bytes or an open file, plain or gzipped: CSV with a header, NDJSON, Parquet, Arrow.
            file: the same as `data`.
            columns: from names in the data to declared ones, such as `{"Customer ID": "person_id"}`; None as a name
                leaves the column out. An index of pandas is left out unless it is named here.
            options: `content_type`, by default inferred from the path's suffix or the first bytes; `delimiter` of CSV
                (`,`, `;`, `|` or a tab), and `decimal=","` where its numbers have commas; `dry_run=True` to check
                everything and store nothing; `accept`, columns that are stored though more than a twentieth of their
                values are not as declared;
                `rows_over_limit="truncate"` to have each individual keep as many rows as the schema allows;
                `unknown_individuals="drop"` to leave out rows of events whose key is no individual's;
                `duplicates="drop"` or `"reject"` for rows with the key and the stored values of an earlier row;
                `idempotency_key`, 1 to 128 printable ASCII characters naming this upload for ever; `progress`, a
                function of the bytes sent and of all bytes (None if unknown). An asynchronous client calls it in the
                thread of the event loop, and reads files in others: leave a frame as it is until the upload has ended.

        Raises:
            InvalidRequestError: rows are wrong; `errors` name the first, `rows` counts all. Or the key was used for
                another upload.
            ColumnsError: the data does not have the declared columns; a ValueError.
            ValueError: a value, a column or a file cannot be sent, and nothing was.
            TypeError: the data is nothing of these.
            ImportError: the frame is sent as Parquet by pyarrow, which is not installed.
        """
        return await self._sender.run(upload(dataset, table, data, file, columns, options))

    async def upload_parts(
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

        For rows beyond what one upload takes, and for hours of them. Every part has a key of its own, `run-0`, `run-1`
        and so on: after a failure, repeat the call with the same `run` and the same data, and what is stored already is
        not stored again. The exception carries the key of the part that failed.

        Args:
            dataset: the dataset's name.
            table: the table's name in the schema.
            data: a data frame, a path, bytes or an open file as `upload` takes them; read as parts are sent.
            files: many of these files, in this order; instead of `data`.
            columns: as in `upload`.
            options: `rows` of a part, a million by default (another number cuts anew, and needs another `run`); `run`,
                the beginning of the keys, up to 100 printable ASCII characters, made anew by default; `progress`, a
                function of the number of parts that are stored and of the rows in them; and `content_type`,
                `delimiter`, `decimal`, `accept`, `dry_run`, `rows_over_limit`, `unknown_individuals` and `duplicates`
                as in `upload`: repeated rows are found within a part.

        Returns:
            The sums of all reports.

        Raises:
            InvalidRequestError: rows of a part are wrong; the parts before it are stored.
            ColumnsError: the data does not have the declared columns.
            ImportError: Parquet and Arrow are cut by pyarrow, which is not installed.
        """
        return await self._sender.run(upload_parts(dataset, table, data, files, columns, options))

    def budgets(self, *, dataset: str, page_size: int = PAGE_SIZE) -> AsyncIterator[BudgetRow]:
        """Every individual's account, fetched page by page as they are consumed."""
        return self._sender.each(datasets.budgets(dataset, page_size))

    async def budget_summary(self, *, dataset: str) -> BudgetSummary:
        """Every individual's budgets in a histogram and a few quantiles."""
        return await self._sender.run(datasets.budget_summary(dataset))

    async def budget_history(self, *, dataset: str) -> SummaryHistory:
        """The summary over time, thinned out as it grows: who had how much left at which sequence."""
        return await self._sender.run(datasets.budget_history(dataset))

    async def export_budgets(self, *, dataset: str, form: Literal["csv", "parquet"] = "csv") -> bytes:
        """Every individual's account as the bytes of one file."""
        return await self._sender.run(datasets.export_budgets(dataset, form))

    async def forecast(self, question: QueryRequest | WrittenQuery) -> Forecast:
        """How many more queries like this one the individuals that it touches can pay for; charges nothing."""
        return await self._sender.run(datasets.forecast(question))

    async def alarm(self, *, dataset: str) -> Alarm:
        """The alarm that is set, and whether it has rung."""
        return await self._sender.run(datasets.alarm(dataset))

    async def set_alarm(self, *, dataset: str, share: float | None) -> Alarm:
        """Ring when so large a share cannot pay for another typical query; None removes the alarm."""
        return await self._sender.run(datasets.set_alarm(dataset, share))

    async def verify(self, *, dataset: str) -> Verification:
        """Begin to verify the ledger, unless that is under way; `verification` tells how it went."""
        return await self._sender.run(datasets.verify(dataset))

    async def verification(self, *, dataset: str) -> Verification:
        """The last verification of the ledger in the process that answers, or the one under way."""
        return await self._sender.run(datasets.verification(dataset))

    async def erasure_requests(self, *, dataset: str) -> tuple[str, ...]:
        """The keys of the individuals that ask to be erased, those who asked first first."""
        return await self._sender.run(datasets.erasure_requests(dataset))

    async def analysts(self, *, dataset: str) -> tuple[AnalystRow, ...]:
        """The analysts that may ask the dataset, with their allowances and the sum of their worst cases."""
        return await self._sender.run(datasets.analysts(dataset))

    async def divergence(self, *, dataset: str, individual: str | int) -> RunDivergence:
        """How well the answers so far tell the dataset with one record from the one without it.

        A diagnostic for curators: it depends on the record, is not a guarantee, and must not leave the curator.
        """
        return await self._sender.run(datasets.divergence(dataset, individual))

    def receipts(self, *, dataset: str, individual: str | int, page_size: int = PAGE_SIZE) -> AsyncIterator[Receipt]:
        """The charge of each query to one individual, newest first, fetched page by page as they are consumed."""
        return self._sender.each(datasets.receipts(dataset, individual, page_size))

    def ledger(
        self, *, dataset: str, analyst: str | None = None, search: str | None = None, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[LedgerRow]:
        """Every answered query, newest first; curators also see the numbers of individuals charged and left out.

        With `analyst`, an id, those of one analyst; with `search`, those whose canonical query has all of its words.
        """
        return self._sender.each(datasets.ledger(dataset, analyst, search, page_size))

    async def audit(self, *, dataset: str, kept: str | None = None, page_size: int = PAGE_SIZE) -> Chain:
        """Read the whole ledger and check its chain of hashes without trusting the service, for auditors and curators.

        Args:
            dataset: the dataset's name.
            kept: the `hash` of an earlier check; `kept_at` of the result says where the ledger had it.
            page_size: how many rows are read at a time.

        Raises:
            APIReplyError: the service's version does not list the parts of its hashes.
        """
        return await self._sender.run(datasets.audit(dataset, kept, page_size))

    async def account(self, *, dataset: str, individual: str | int) -> BudgetRow:
        """One individual's account, by its key."""
        return await self._sender.run(datasets.account(dataset, individual))

    async def record(self, *, dataset: str, individual: str | int) -> Mapping[str, object]:
        """One individual's record as the service holds it: by table, the number of rows and the rows."""
        return await self._sender.run(datasets.record(dataset, individual))

    def acts(self, *, dataset: str, page_size: int = PAGE_SIZE) -> AsyncIterator[ActRow]:
        """The acts on the dataset, newest first: uploads, lowered limits, erasures, epochs."""
        return self._sender.each(datasets.acts(dataset, page_size))

    async def open_epoch(self, *, dataset: str) -> int:
        """Open the next epoch: from now on, queries are answered afresh and charged. Returns its number."""
        return await self._sender.run(datasets.open_epoch(dataset))

    async def extend(
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
        return await self._sender.run(datasets.extend(dataset, tables, capacity))

    async def correct(self, *, dataset: str, individual: str | int, values: Mapping[str, object]) -> UploadReport:
        """Put other values, by column, into an individual's record; its events and its account stay as they are."""
        return await self._sender.run(datasets.correct(dataset, individual, values))

    async def archive(self, *, dataset: str, rows: Literal["keep", "delete"]) -> Dataset:
        """End all queries and uploads for good, and keep or delete the rows. The ledger and the accounts are kept."""
        return await self._sender.run(datasets.archive(dataset, rows))

    async def delete(self, *, dataset: str) -> None:
        """Delete a dataset that never answered a query, with its rows and the keys that are good for it alone.

        Raises:
            ConflictError: it has answered; `archive` it instead.
        """
        await self._sender.run(datasets.remove(dataset))

    async def erase(self, *, dataset: str, individual: str | int) -> None:
        """Erase an individual's record. Its spent total stays, so that it cannot be spent twice."""
        await self._sender.run(datasets.erase(dataset, individual))
