"""The log of a serving process: a line on stderr for each event, as JSON or for a terminal, rendered by structlog.

Records are those of Python's `logging`, of our modules and of libraries alike. An exception's text may quote a record,
so none is written: of each exception the log has its kind and the places in the code, and of the arguments of a
library's message those that are exceptions are replaced by their kind. A repeated fault is one line, and after a minute
one more with the number of its repetitions.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, Final, Literal, cast

from service.incidents import REQUEST_ID, kind_of, places_of, report_incident

Style = Literal["json", "console"]
FOLDED_S: Final = 60.0
FOLDS_MAX: Final = 1024
"""The number of different lines that are remembered at most; beyond that the oldest is forgotten."""
FIELDS: Final = ("time", "level", "logger", "event", "request_id", "dataset", "error", "at", "count")
"""Every field of a line, in this order; those that have no value are left out."""
_OURS: Final = "sparing"
_Event = MutableMapping[str, Any]
_Key = tuple[object, ...]


def configure_logs(style: Style | None = None, stream: IO[str] | None = None) -> "FoldingHandler":
    """Send the log to stderr, or to `stream`: by default for a console on a terminal, and else as JSON."""
    stream = stream or sys.stderr
    handler = FoldingHandler(stream)
    handler.setFormatter(_Formatter(style or ("console" if stream.isatty() else "json"), is_coloured=stream.isatty()))
    root = logging.getLogger()
    for other in [each for each in root.handlers if isinstance(each, FoldingHandler)]:
        root.removeHandler(other)
        other.close()
    root.addHandler(handler)
    logging.getLogger(_OURS).setLevel(logging.INFO)
    threading.excepthook = _report_thread
    return handler


def _report_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        report_incident(args.exc_value, f"thread {args.thread.name if args.thread else 'unknown'}")


class _Formatter(logging.Formatter):
    """Structlog's formatter, made for the first line: to import it takes longer than most commands."""

    def __init__(self, style: Style, *, is_coloured: bool) -> None:
        super().__init__()
        self._form, self._is_coloured = style, is_coloured
        self._formatter: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        if self._formatter is None:
            self._formatter = self._made()
        line = logging.makeLogRecord(record.__dict__)
        line.msg, line.args = on_one_line(_text_of(record)), ()
        return self._formatter.format(line)

    def _made(self) -> logging.Formatter:
        import structlog  # noqa: PLC0415 - see above

        renderer: Any
        if self._form == "json":
            renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
        else:
            renderer = structlog.dev.ConsoleRenderer(colors=self._is_coloured, timestamp_key="time", sort_keys=False)
        return structlog.stdlib.ProcessorFormatter(processors=[_fields_of, renderer])


def _fields_of(_logger: object, level: str, event: _Event) -> _Event:
    """The fields of a record."""
    record = cast(logging.LogRecord, event["_record"])
    fields: dict[str, object] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": level,
        "logger": record.name,
        "event": event["event"],
        "request_id": getattr(record, "request_id", None),
        "count": getattr(record, "count", None),
    }
    error = event.get("exc_info", (None, None))[1]
    for name in ("dataset", "error", "at"):
        fields[name] = getattr(record, name, None)
    if error is not None:
        fields |= {"error": kind_of(error), "at": places_of(error)}
    return {name: fields[name] for name in FIELDS if fields[name] is not None}


def _text_of(record: logging.LogRecord) -> str:
    """The message of a record: of an incident without the fields, of a library's its first line, without exceptions."""
    about = getattr(record, "about", None)
    if about is not None:
        return f"incident {about}"
    if not _is_ours(record) and isinstance(record.args, tuple):
        record = logging.makeLogRecord(record.__dict__)
        record.args = tuple(kind_of(arg) if isinstance(arg, BaseException) else arg for arg in record.args or ())
    text = record.getMessage()
    return text if _is_ours(record) else text.partition("\n")[0]


def on_one_line(text: str) -> str:
    """The text with escapes for what is no printable character: it can neither begin a line nor steer a terminal."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == _OURS


@dataclass(slots=True)
class _Fold:
    """A line that was written, and the record and number of its repetitions since."""

    until_s: float
    record: logging.LogRecord
    count: int = 0


class FoldingHandler(logging.StreamHandler[IO[str]]):
    """Writes a line at once, and for its repetitions within FOLDED_S one line with their number."""

    def __init__(self, stream: IO[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._folds: dict[_Key, _Fold] = {}
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write it, or count it; `logging` holds the handler's lock."""
        record.request_id = REQUEST_ID.get()
        self.write_repeats()
        fold = self._folds.get(key := _key_of(record))
        if fold is not None:
            fold.record, fold.count = record, fold.count + 1
            self._begin_timer()
            return
        if len(self._folds) >= FOLDS_MAX:
            self._write_repeat(self._folds.pop(next(iter(self._folds))))
        self._folds[key] = _Fold(self._clock() + FOLDED_S, record)
        super().emit(record)

    def write_repeats(self) -> None:
        """Write the number of the repetitions of each line whose time is over; one that still comes begins anew."""
        now_s = self._clock()
        for key, fold in [each for each in self._folds.items() if each[1].until_s <= now_s]:
            del self._folds[key]
            if fold.count:
                self._write_repeat(fold)
                self._folds[key] = _Fold(now_s + FOLDED_S, fold.record)

    def close(self) -> None:
        """Write what was counted."""
        with self.lock or threading.RLock():
            if self._timer is not None:
                self._timer.cancel()
            for fold in self._folds.values():
                self._write_repeat(fold)
            self._folds.clear()
        super().close()

    def _write_repeat(self, fold: _Fold) -> None:
        if fold.count:
            record = logging.makeLogRecord(fold.record.__dict__)
            record.count = fold.count
            super().emit(record)

    def _begin_timer(self) -> None:
        """Have repetitions written though nothing else is logged."""
        if self._timer is None:
            self._timer = threading.Timer(FOLDED_S, self._ring)
            self._timer.daemon = True
            self._timer.name = "logs"
            self._timer.start()

    def _ring(self) -> None:
        with self.lock or threading.RLock():
            self._timer = None
            self.write_repeats()
            if any(fold.count for fold in self._folds.values()):
                self._begin_timer()


def _key_of(record: logging.LogRecord) -> _Key:
    """Equal for repetitions of one fault: the ids of requests do not count, nor does the message of an incident."""
    error = record.exc_info[1] if record.exc_info else None
    kind = getattr(record, "error", None) or (error is not None and (kind_of(error), places_of(error)))
    text = record.msg if kind else _text_of(record)
    return record.name, record.levelno, text, kind, getattr(record, "at", None), getattr(record, "dataset", None)
