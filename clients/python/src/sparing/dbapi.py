"""PEP 249, the interface that Python's tools have to databases: `pandas.read_sql(text, sparing.connect(...))`.

Each `execute` asks one query under one idempotency key, with the noise that `connect` was given. The query is in the
dialect of docs/sql.md, with aliases, ORDER BY, LIMIT and OFFSET. The rows are its answer: the groups, the numbers, and
beside each number a column `<name>_half_width` with its half width at 95 %. Other statements are refused: nothing can
be written, and `commit` and `rollback` do nothing.
"""

import builtins
import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from time import localtime
from typing import Any, Final, NoReturn, Self, Unpack

from sparing._answers import Answer
from sparing._client import Client
from sparing._closing import Closing
from sparing._errors import (
    APIConnectionError,
    APIReplyError,
    APIStatusError,
    AuthenticationError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    SparingError,
    UnavailableError,
    misread,
)
from sparing._labels import Labels
from sparing._precisions import ItemNoise
from sparing._printable import printable
from sparing._query import ByItem, NoiseRequest, QueryRequest, question_json
from sparing._sql import SQLError
from sparing._sql_parameters import ParameterError, bound
from sparing._sql_tables import NotASelectError, Table, TableQuery, table_of, table_query

apilevel: Final = "2.0"
threadsafety: Final = 2  # threads may share a connection, and not a cursor
paramstyle: Final = "qmark"

STRING: Final = "STRING"
BINARY: Final = "BINARY"
NUMBER: Final = "NUMBER"  # also of booleans
DATETIME: Final = "DATETIME"
ROWID: Final = "ROWID"

Date = date
Time = time  # which no column has, and no literal
Timestamp = datetime
Binary = bytes


class Warning(builtins.Warning):  # noqa: A001 - PEP 249 names it
    """A likely mistake in a query that was answered, or a caveat of the answer; also a category of `warnings`."""


class Error(Exception):
    """The base of all exceptions of this module; its cause is the client's exception, if there is one."""

    idempotency_key: str | None = None  # that of a query whose outcome is not known: give it to `execute` again


class InterfaceError(Error):
    """The interface was used wrongly, and nothing was sent."""


class DatabaseError(Error):
    """An error of the query or of the service."""


class DataError(DatabaseError):
    """A parameter's value has no literal in SQL."""


class OperationalError(DatabaseError):
    """The service cannot be reached or cannot answer now, or the key is not allowed to ask this query."""


class IntegrityError(DatabaseError):
    """An error that PEP 249 requires; it is never raised, as nothing is written."""


class InternalError(DatabaseError):
    """The service failed, or this version cannot read its reply."""


class ProgrammingError(DatabaseError):
    """The text is not SQL or not in the dialect, or the service does not accept the query."""


class NotSupportedError(DatabaseError):
    """A statement other than SELECT, or a part of PEP 249 that this module does not support."""


ERRORS: Final[Mapping[type[builtins.Exception], type[Error]]] = {
    NotASelectError: NotSupportedError,
    SQLError: ProgrammingError,
    ParameterError: DataError,
    InvalidRequestError: ProgrammingError,
    NotFoundError: ProgrammingError,
    AuthenticationError: OperationalError,
    PermissionDeniedError: OperationalError,
    ConflictError: OperationalError,
    RateLimitedError: OperationalError,
    UnavailableError: OperationalError,
    APIConnectionError: OperationalError,
    APIStatusError: InternalError,
    APIReplyError: InternalError,
    ImportError: InterfaceError,
    ValueError: InterfaceError,
    TypeError: InterfaceError,
}
"""The errors of this module by the client's exceptions; the first class that fits an exception is used."""


def connect(
    *,
    dataset: str,
    base_url: str | None = None,
    api_key: str | None = None,
    client: Client | None = None,
    l2_clip: ByItem | None = None,
    rows: int | None = None,
    reuse: bool = True,
    half_width_columns: bool = True,
    **noise: Unpack[NoiseRequest],
) -> "Connection":
    """A connection to one dataset, for tools that use PEP 249; no request is sent yet.

    Args:
        dataset: the dataset's name.
        base_url: the service's address; default: the environment variable SPARING_URL.
        api_key: an analyst's API key; default: the environment variable SPARING_API_KEY.
        client: an existing client, instead of `base_url` and `api_key`; closing the connection leaves it open.
        l2_clip: the bound on the L2 norm of one individual's vector, in every query.
        rows: a number of events: an individual with more selected events weighs as much as one with this number.
        reuse: whether a query that was asked before in this epoch gets its released answer, at no charge.
        half_width_columns: whether each number has its half width in a column beside it.
        noise: the noise of every query: exactly one of `sigma`, `rho`, `share`, `half_width` (with `confidence`) and
            `scale`.

    Raises:
        InterfaceError: not exactly one kind of noise is given, or the address or the key is missing.
    """
    asked: QueryRequest = {"dataset": dataset, "l2_clip": l2_clip, "rows": rows, "reuse": reuse}
    asked.update(noise)  # type: ignore[typeddict-item]  # its keys are those of a query
    with _translated():
        question_json(asked)
        return Connection(
            client or Client(base_url=base_url, api_key=api_key),
            asked,
            owns_client=client is None,
            has_half_widths=half_width_columns,
        )


class Connection(Closing):
    """A dataset and the noise of its queries; made by `connect`. Threads may share it.

    Attributes:
        client: the client that sends the queries.
        dataset: the name of the dataset.
        has_half_widths: whether each number has its half width in a column beside it.
    """

    Warning, Error = Warning, Error
    InterfaceError, DatabaseError = InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(self, client: Client, asked: QueryRequest, *, owns_client: bool, has_half_widths: bool) -> None:
        """Make a connection; use `connect` instead."""
        self.client, self.dataset = client, asked["dataset"]
        self.has_half_widths = has_half_widths
        self._asked, self._owns_client, self._is_open = asked, owns_client, True
        self._tables: Mapping[str, Any] | None = None

    def cursor(self) -> "Cursor":
        """A new cursor, which asks one query at a time."""
        self.check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: nothing is written, and every answer is final."""
        self.check_open()

    def rollback(self) -> None:
        """Do nothing: charges cannot be taken back."""
        self.check_open()

    def close(self) -> None:
        """Close the connection and all its cursors. Calling it twice is harmless."""
        self._is_open = False
        if self._owns_client:
            self.client.close()

    def check_open(self) -> None:
        """Raise InterfaceError if the connection is closed."""
        if not self._is_open:
            raise InterfaceError("the connection is closed")

    def ask(self, query: TableQuery, idempotency_key: str | None) -> Answer:
        """The answer to a query, asked with the noise and the bounds of this connection."""
        items = tuple((item, ItemNoise()) for item in query.items)
        asked: QueryRequest = {**self._asked, **query.question}
        if self.known_tables().get(str(asked.get("from_")), {}).get("kind") == "individuals":
            asked["rows"] = None  # an individual has one row there
        steps = replace(self.client.dataset(self.dataset).query(), _asked=asked, _items=items)
        return steps.run(idempotency_key=idempotency_key)

    def named(self, answer: Answer) -> Answer:
        """The answer with all its labels; the schema is read for this if the service sent no labels."""
        if not isinstance(answer.labels, Labels):
            return answer
        return answer.named(self.client.datasets.get(dataset=self.dataset))

    def tables(self) -> Mapping[str, object]:
        """The public schema of the dataset, as it was registered; read anew each time."""
        self.check_open()
        with _translated():
            return self.client.datasets.get(dataset=self.dataset).tables

    def known_tables(self) -> Mapping[str, Any]:
        """The public schema, read once for each connection, as extensions never change the meaning of a name."""
        if self._tables is None:
            self._tables = self.tables()
        return self._tables


class Cursor(Closing):
    """The queries of a connection, one at a time, and the rows of the last. Not for several threads at once.

    Attributes:
        connection: the connection.
        arraysize: the number of rows that `fetchmany` gives by default.
        answer: the `Answer` to the last query; None before a query.
        description: for each column its name, its type and five times None; None before a query.
        rowcount: the number of rows of the last query; -1 before a query.
    """

    def __init__(self, connection: Connection) -> None:
        """Make a cursor; use `connection.cursor` instead."""
        self.connection, self.arraysize = connection, 1
        self.answer: Answer | None
        self.description: tuple[tuple[object, ...], ...] | None
        self._rows: Iterator[tuple[object, ...]] | None
        self._forget()
        self._is_open = True

    def execute(self, operation: str, parameters: Sequence[object] = (), *, idempotency_key: str | None = None) -> Self:
        """Ask one query, with the parameters in place of its `?`, and wait for the answer.

        Raises:
            OperationalError: no answer came, and the outcome may be unknown. Repeat the call with the same text and the
                error's `idempotency_key` to fetch the answer without a second charge.
            Error: any other failure, as another class of this module.
        """
        self._check_open()
        self._forget()
        with _translated():
            table = self._ask(bound(operation, parameters), idempotency_key)
        self._rows, self.rowcount = iter(table.rows), len(table.rows)
        self.description = tuple(
            (name, _type_of(sample), None, None, None, None, None)
            for name, sample in zip(table.names, table.samples, strict=True)
        )
        for words in () if self.answer is None else (*self.answer.warnings, *self.answer.caveats):
            warnings.warn(printable(words), Warning, stacklevel=2)
        return self

    def executemany(self, operation: str, parameters: Sequence[Sequence[object]]) -> NoReturn:  # noqa: ARG002 - PEP 249
        """Raise NotSupportedError, as each query has rows of its own."""
        raise NotSupportedError("executemany is for statements without rows; ask each query by execute")

    def fetchone(self) -> tuple[object, ...] | None:
        """The next row; None after the last."""
        return next(self._left(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[object, ...]]:
        """The next rows, at most `size` of them; fewer at the end."""
        left = self._left()
        return [row for _, row in zip(range(self.arraysize if size is None else size), left, strict=False)]

    def fetchall(self) -> list[tuple[object, ...]]:
        """All remaining rows."""
        return list(self._left())

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Do nothing: no memory is set aside for parameters."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: no column is cut off."""

    def close(self) -> None:
        """Close the cursor and drop its rows. Calling it twice is harmless."""
        self._forget()
        self._is_open = False

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return self._left()

    def __next__(self) -> tuple[object, ...]:
        return next(self._left())

    def _ask(self, text: str, idempotency_key: str | None) -> Table:
        query = table_query(text, self.connection.known_tables)
        self.answer = self.connection.ask(query, idempotency_key)
        named = self.connection.named(self.answer)
        with misread("the reply is not an answer to this text"):
            return table_of(named, query, has_half_widths=self.connection.has_half_widths)

    def _forget(self) -> None:
        self.answer, self.description, self.rowcount, self._rows = None, None, -1, None

    def _left(self) -> Iterator[tuple[object, ...]]:
        self._check_open()
        if self._rows is None:
            raise ProgrammingError("there are no rows before a query")
        return self._rows

    def _check_open(self) -> None:
        self.connection.check_open()
        if not self._is_open:
            raise InterfaceError("the cursor is closed")


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - PEP 249 names it
    """The local date of a time in seconds since 1970."""
    return date(*localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> time:  # noqa: N802 - PEP 249 names it
    """The local time of the day of a time in seconds since 1970."""
    return time(*localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802 - PEP 249 names it
    """The local date and time of a time in seconds since 1970."""
    return datetime(*localtime(ticks)[:6])  # noqa: DTZ001 - as columns have it, without a zone


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """A context that turns the client's exceptions into those of this module, by the first of ERRORS that fits."""
    try:
        yield
    except (SparingError, ImportError, ValueError, TypeError) as error:
        kind = next(found for known, found in ERRORS.items() if isinstance(error, known))
        translated = kind(str(error).replace("per_individual.", ""))  # as `connect` names `l2_clip` and `rows`
        translated.idempotency_key = getattr(error, "idempotency_key", None)
        raise translated from error


def _type_of(value: object) -> str:
    return STRING if isinstance(value, str) else DATETIME if isinstance(value, date) else NUMBER
