"""The reader of uploads, in this process or in a process of its own."""

from dataclasses import dataclass
from importlib import import_module
from typing import BinaryIO, Literal, Protocol

from service.engine.ingest import Duplicates, FileForm, FirstRows, Rows
from service.engine.ingest.upload_size import UploadBounds
from service.query.keys import KeyComparison
from service.query.schema import EventsTable, IndividualsTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A request to read the bytes of an upload; no individual's limit in the upload may be above `budget_units`."""

    kind: Literal["rows"] = "rows"
    content_type: str
    table: IndividualsTable | EventsTable
    budget_units: int
    keys: KeyComparison = "exact"
    form: FileForm
    duplicates: Duplicates = "keep"
    bounds: UploadBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRowsRequest:
    """A request to read the beginning of a Parquet file or an Arrow stream."""

    kind: Literal["first rows"] = "first rows"
    content_type: str
    bounds: UploadBounds


class RowReader(Protocol):
    """A reader of uploads: several at a time, called from threads that may wait."""

    def open(self) -> None:
        """Get ready in advance, so that the first upload need not wait for that."""

    def read(self, source: BinaryIO, request: ReadRequest) -> Rows:
        """All rows of an upload, from a seekable `source` at its beginning.

        Raises RowsProblem where the upload is wrong or too large, and Unavailable for a fault of the reader.
        """

    def read_first(self, source: BinaryIO, request: FirstRowsRequest) -> FirstRows:
        """The first rows of a file that belongs to no table yet. Raises as `read` does."""


class ReaderHere:
    """The RowReader that reads in this process, for tests and where no other process can be started."""

    def open(self) -> None:
        """Import the modules that read uploads, which takes a while. The start of a process does without them."""
        import_module("service.engine.ingest.reader")
        import_module("service.engine.ingest.first_rows")

    def read(self, source: BinaryIO, request: ReadRequest) -> Rows:
        """All rows of an upload. Raises RowsProblem."""
        from service.engine.ingest.reader import read_rows  # noqa: PLC0415 - see `open`

        return read_rows(
            source,
            request.content_type,
            request.table,
            budget_units=request.budget_units,
            keys=request.keys,
            form=request.form,
            duplicates=request.duplicates,
            bounds=request.bounds,
        )

    def read_first(self, source: BinaryIO, request: FirstRowsRequest) -> FirstRows:
        """The first rows of a file. Raises RowsProblem."""
        from service.engine.ingest.first_rows import read_first_rows  # noqa: PLC0415 - see `open`

        return read_first_rows(source, request.content_type)
