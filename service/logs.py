"""The log of a serving process: a line on stderr for each event, as JSON or for a terminal, rendered by structlog.

Records are those of Python's `logging`, from our modules and from libraries alike. An exception's text may quote a
record, so that none is written. The log has an exception's kind and the places in the code. Among the arguments of a
library's message, exceptions are replaced by their kind. A repeated fault is one line, and then every minute one more
line with the number of its repetitions.
"""

import logging
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import IO, Any, Final, Literal

from service.incidents import REQUEST_ID, kind_of, places_of, report_incident

Style = Literal["json", "console"]
FOLDED_S: Final = 60.0
FOLDS_MAX: Final = 1024
"""The most different lines that are remembered. Beyond that the oldest is forgotten."""
FIELDS: Final = ("time", "level", "logger", "event", "request_id", "dataset", "error", "at", "count")
"""Every field of a line, in this order. Fields without a value are left out."""
_OURS: Final = "sparing"


def configure_logs(style: Style | None = None, stream: IO[str] | None = None) -> "FoldingHandler":
    """Send the log to stderr, or to `stream`. By default it is for a console on a terminal, and otherwise JSON."""
    stream = stream or sys.stderr
    handler = FoldingHandler(stream, style or ("console" if stream.isatty() else "json"))
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


def on_one_line(text: str) -> str:
    """The text with escapes for unprintable characters, so that it can neither begin a line nor steer a terminal."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a line; None for those without a value."""
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event = on_one_line(_text_of(record))
    line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "logger": record.name, "event": event}
    line |= {"request_id": REQUEST_ID.get()} | {name: vars(record).get(name) for name in ("dataset", "error", "at")}
    if record.exc_info and record.exc_info[1] is not None:
        line |= {"error": kind_of(record.exc_info[1]), "at": places_of(record.exc_info[1])}
    return line | {"count": 0}


def _text_of(record: logging.LogRecord) -> str:
    """The message of a record: an incident's without the fields, the first line of a library's without exceptions."""
    if hasattr(record, "about"):
        return f"incident {record.about}"
    if record.name.partition(".")[0] == _OURS:
        return record.getMessage()
    line = logging.makeLogRecord(vars(record))
    if isinstance(record.args, tuple):
        line.args = tuple(kind_of(each) if isinstance(each, BaseException) else each for each in record.args)
    return line.getMessage().partition("\n")[0]


class FoldingHandler(logging.StreamHandler[IO[str]]):
    """Writes a new line at once, and every FOLDED_S one line with the number of its repetitions since."""

    def __init__(self, stream: IO[str], style: Style) -> None:
        super().__init__(stream)
        self._style = style
        self._lines: dict[object, dict[str, Any]] = {}
        """The last of the equal lines, by what they have in common, with their `count` since one was written."""
        self._is_closed = threading.Event()
        threading.Thread(target=self._fold, name="logs", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, or count it. `logging` holds the handler's lock."""
        line = _fields_of(record)
        text = record.msg if line["error"] else line["event"]  # the message of a fault may have the id of a request
        key = (text, *(line[name] for name in ("level", "logger", "dataset", "error", "at")))
        before = self._lines.pop(key, None)
        self._lines[key] = line | {"count": 0 if before is None else before["count"] + 1}
        if before is None:
            self._write(line)
        if len(self._lines) > FOLDS_MAX and (oldest := self._lines.pop(next(iter(self._lines))))["count"]:
            self._write(oldest)

    def format(self, record: logging.LogRecord) -> str:
        """The line as text."""
        line: dict[str, Any] = vars(record)["line"]
        return str(self._render(None, "", {name: value for name, value in line.items() if value not in (None, 0)}))

    @cached_property
    def _render(self) -> Callable[[None, str, dict[str, Any]], Any]:
        """Structlog's renderer, made for the first line: importing structlog takes longer than most commands."""
        import structlog  # noqa: PLC0415 - see above

        if self._style == "json":
            return structlog.processors.JSONRenderer(ensure_ascii=False)
        return structlog.dev.ConsoleRenderer(colors=self.stream.isatty(), timestamp_key="time", sort_keys=False)

    def write_repeats(self) -> None:
        """Write how often each line has been repeated, and forget those that were not."""
        self._lines = {key: line for key, line in self._lines.items() if line["count"]}
        for line in self._lines.values():
            self._write(line)
            line["count"] = 0

    def close(self) -> None:
        """Write the lines that were counted, and close."""
        self._is_closed.set()
        with self.lock or threading.RLock():
            self.write_repeats()
        super().close()

    def _write(self, line: dict[str, Any]) -> None:
        super().emit(logging.makeLogRecord({"line": line}))

    def _fold(self) -> None:
        while not self._is_closed.wait(FOLDED_S):
            with self.lock or threading.RLock():
                self.write_repeats()
