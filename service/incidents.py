"""Incidents: what went wrong and where, not a word of what it said: an exception's text may quote a record."""

import logging
import traceback
from pathlib import Path

log = logging.getLogger("sparing.incidents")

_FRAMES_MAX = 8


def report_incident(error: BaseException, about: str) -> None:
    """Log the kind of error, the places in the code, and `about`, which the caller makes from public words alone."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
    places = " < ".join(f"{Path(frame.filename).stem}.{frame.name}:{frame.lineno}" for frame in reversed(frames))
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    log.error("incident %s error=%s at=%s", about, kind, places)
