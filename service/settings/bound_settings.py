"""The settings that bound one principal's use of shared resources. Few principals reach the defaults."""

from typing import Annotated, Final

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticKnownError
from pydantic_settings import BaseSettings

from service.bounds import (
    PARAMETERS_BYTES_MAX,
    QUERIES_WAITING_MAX,
    SPOOL_BYTES_MAX,
    SPOOL_BYTES_TOTAL_MAX,
    STRANGERS_MAX,
    STREAMS_MAX,
    WAITING_MAX,
)
from service.numerals import is_digits

_MS_MAX: Final = 2**31 - 1


def _digits(text: str) -> str:
    # Pydantic alone would also take signs, spaces, underscores and 1.0.
    if not is_digits(text):
        raise PydanticKnownError("int_parsing")
    return text


Number = Annotated[int, BeforeValidator(_digits)]
"""A whole number in digits alone."""
Milliseconds = Annotated[Number, Field(le=_MS_MAX)]
"""A time in milliseconds, within the range of Postgres and of timers."""


class BoundSettings(BaseSettings):
    """The bounds of principals."""

    waiting_max: Number = Field(
        validation_alias="SPARING_WAITING_MAX",
        default=WAITING_MAX,
        ge=1,
        description="The requests of one principal that may wait at once in one place, such as the reads or the acts "
        "on one dataset.",
    )
    queries_waiting_max: Number = Field(
        validation_alias="SPARING_QUERIES_WAITING_MAX",
        default=QUERIES_WAITING_MAX,
        ge=1,
        description="The queries of one analyst that may wait at once to be read or to be compiled.",
    )
    strangers_max: Number = Field(
        validation_alias="SPARING_STRANGERS_MAX",
        default=STRANGERS_MAX,
        ge=1,
        description="The requests with keys that were not recognised lately that may wait at once to be looked up.",
    )
    streams_max: Number = Field(
        validation_alias="SPARING_STREAMS_MAX",
        default=STREAMS_MAX,
        ge=1,
        description="The streams of events that one principal may have open in one process.",
    )
    spool_bytes_max: Number = Field(
        validation_alias="SPARING_SPOOL_BYTES_MAX",
        default=SPOOL_BYTES_MAX,
        ge=1,
        description="The most bytes that the uploads of one principal may have in TMPDIR at once in one process, "
        "those that gzip unpacks to included.",
    )
    spool_bytes_total_max: Number = Field(
        validation_alias="SPARING_SPOOL_BYTES_TOTAL_MAX",
        default=SPOOL_BYTES_TOTAL_MAX,
        ge=1,
        description="The same of all principals together.",
    )
    parameters_bytes_max: Number = Field(
        validation_alias="SPARING_PARAMETERS_BYTES_MAX",
        default=PARAMETERS_BYTES_MAX,
        ge=0,
        description="The most bytes of parameters in npz that are kept for one analyst in one dataset, each array "
        "with 4,096 at least.",
    )
