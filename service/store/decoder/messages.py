"""The messages between the service and its decoders: JSON, of which nothing is executed and every type is checked."""

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from service.engine.ingest import FirstRows
from service.engine.ingest.problems import ErrorCounts, RowError
from service.engine.ingest.rows import RowCounts
from service.ledger.ports.row_reader import FirstRowsRequest, ReadRequest

LINE_BYTES_MAX: Final = 2**20
"""The most bytes of a decoder's message, which is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The upload is read, and its rows are in the file."""

    kind: Literal["read"] = "read"
    counts: RowCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFirst:
    """The first rows are read, and in the file as JSON."""

    kind: Literal["read first"] = "read first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The upload is wrong, or too large."""

    kind: Literal["refused"] = "refused"
    errors: tuple[RowError, ...]
    counts: ErrorCounts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """The upload needs more memory than its limit."""

    kind: Literal["out of memory"] = "out of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRoom:
    """The folder of uploads has no room for the rows."""

    kind: Literal["no room"] = "no room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Something went wrong that is not the upload's fault: the kind of the error, and where it was raised."""

    kind: Literal["failed"] = "failed"
    error: str
    place: str
    is_passing: bool
    """Tells that another try may succeed: a process could not be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The decoder has ended: its exit code, or minus the signal that ended it, and its largest resident memory."""

    kind: Literal["ended"] = "ended"
    exit_code: int
    peak_bytes: int


Message = Annotated[Read | ReadFirst | Refused | OutOfMemory | NoRoom | Failed | Ended, Field(discriminator="kind")]

Request = ReadRequest | FirstRowsRequest
REQUEST: Final[TypeAdapter[Request]] = TypeAdapter(Annotated[Request, Field(discriminator="kind")])
FIRST_ROWS: Final = TypeAdapter(FirstRows)
FIRST_ROWS_BYTES_MAX: Final = 2**25
"""The most bytes of first rows as JSON, in which one byte of CSV may take six."""
MESSAGE: Final[TypeAdapter[Message]] = TypeAdapter(Message)


def line_of(message: Message) -> bytes:
    """A message as a line."""
    return MESSAGE.dump_json(message) + b"\n"
