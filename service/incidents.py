"""Incidents: what went wrong and where, without the exception's text, which may quote a record."""

import logging
import traceback
from contextvars import ContextVar
from pathlib import Path
from typing import Final

log = logging.getLogger("sparing.incidents")

REQUEST_ID: Final[ContextVar[str | None]] = ContextVar("request_id", default=None)
"""The id of the request that is worked on, for the log lines that the work causes."""

_FRAMES_MAX = 8


def report_incident(error: BaseException, about: str, *, dataset: str | None = None) -> None:
    """Log the kind of error, the places in the code, and `about`, which the caller makes from public words alone.

    `dataset` is the public name of the dataset that the incident concerns.
    """
    kind, places = kind_of(error), places_of(error)
    more = {"about": about, "error": kind, "at": places, "dataset": dataset}
    log.error("incident %s error=%s at=%s", about, kind, places, extra=more)


def kind_of(error: BaseException) -> str:
    """The name of the error's class."""
    return f"{type(error).__module__}.{type(error).__qualname__}"


def places_of(error: BaseException) -> str:
    """The places in the code that the error has passed, the innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
    return " < ".join(f"{Path(frame.filename).stem}.{frame.name}:{frame.lineno}" for frame in reversed(frames))
