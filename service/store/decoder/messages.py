"""The messages between the service and its decoders: JSON, of which nothing is executed and every type is checked."""

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from service.engine.ingest import ErrorCounts, FirstRows, RowError
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
class Told:
    """The first rows are in the file as JSON; the upload needs more memory than its limit; its folder has no room."""

    kind: Literal["read first", "out of memory", "no room"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The upload is wrong, or too large."""

    kind: Literal["refused"] = "refused"
    errors: tuple[RowError, ...]
    counts: ErrorCounts | None


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


Message = Annotated[Read | Told | Refused | Failed | Ended, Field(discriminator="kind")]

Request = ReadRequest | FirstRowsRequest
REQUEST: Final[TypeAdapter[Request]] = TypeAdapter(Annotated[Request, Field(discriminator="kind")])
FIRST_ROWS: Final = TypeAdapter(FirstRows)
FIRST_ROWS_BYTES_MAX: Final = 2**25
"""The most bytes of first rows as JSON, in which one byte of CSV may take six."""
MESSAGE: Final[TypeAdapter[Message]] = TypeAdapter(Message)


def line_of(message: Message) -> bytes:
    """A message as a line."""
    return MESSAGE.dump_json(message) + b"\n"
