"""The command line for analysts: datasets, queries, previews, history, allowances.

`main` takes the words, the environment, the streams and the options of `Client` as arguments, for tests.
"""

import argparse
import dataclasses
import json
import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any, TextIO

from sparing import (
    Answer,
    APIStatusError,
    AuthenticationError,
    Client,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    Preview,
    SparingError,
    UnavailableError,
)
from sparing._cli_completion import script
from sparing._cli_grammar import PROGRAM, parser
from sparing._cli_questions import UsageError, asked_of
from sparing._cli_tables import (
    allowances_table,
    answer_text,
    dataset_text,
    datasets_table,
    history_table,
    preview_text,
    steps_table,
    warning_lines,
)
from sparing._constants import ENV_API_KEY, ENV_URL, PAGE_SIZE
from sparing._labels import Labels
from sparing._printable import printable, printable_json

REFUSED, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130
_NOTHING_HAPPENED = (InvalidRequestError, AuthenticationError, PermissionDeniedError, NotFoundError)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """One command: its arguments, its client, and the streams that it reads and writes."""

    arguments: argparse.Namespace
    client: Client
    stdin: TextIO
    out: TextIO
    err: TextIO

    def show(self, found: object, text: Callable[[Any], str]) -> None:
        """Print models, as JSON or as text."""
        shown = _json(found) if self.arguments.json else text(found)
        self.out.write(f"{shown}\n")

    def show_priced(self, found: Answer | Preview, text: Callable[[Any], str]) -> None:
        """Print an answer or a preview as `show` does; beside JSON, print the warnings to standard error too."""
        self.show(found, text)
        if self.arguments.json:
            self.err.writelines(f"{line}\n" for line in warning_lines(found))


def main(
    words: Sequence[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    stdin: TextIO | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
    **options: Any,  # noqa: ANN401 - of Client
) -> int:
    """Run one command and return its exit status: 0 done, 1 refused, 2 wrong usage, 3 no answer, 130 interrupted.

    Raises SystemExit for `--help`, `--version` and unknown commands, as argparse does. `options` are passed to
    `Client`, for tests.
    """
    arguments = parser().parse_args(words)
    out, err = out or sys.stdout, err or sys.stderr
    if arguments.command == "completion":
        out.write(script(arguments.shell))
        return 0
    try:
        with _client(arguments, os.environ if environ is None else environ, options) as client:
            _COMMANDS[arguments.command](
                _Session(arguments=arguments, client=client, stdin=stdin or sys.stdin, out=out, err=err)
            )
    except (UsageError, ImportError, ValueError) as error:
        err.write(f"{PROGRAM} {arguments.command}: {printable(error)}\n")
        return USAGE
    except SparingError as error:
        err.write(_told(error))
        is_away = not isinstance(error, APIStatusError) or isinstance(error, UnavailableError)
        return UNREACHABLE if is_away else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _client(arguments: argparse.Namespace, environ: Mapping[str, str], options: Mapping[str, Any]) -> Client:
    if not (arguments.url or environ.get(ENV_URL, "").strip()):
        raise UsageError(f"give --url, or set {ENV_URL}")
    if not environ.get(ENV_API_KEY, "").strip():
        raise UsageError(f"set {ENV_API_KEY} to your key")
    return Client(base_url=arguments.url, timeout=arguments.timeout, environ=environ, **options)


def _datasets(session: _Session) -> None:
    session.show(list(session.client.datasets.list()), datasets_table)


def _show(session: _Session) -> None:
    session.show(session.client.datasets.get(dataset=session.arguments.dataset), dataset_text)


def _query(session: _Session) -> None:
    """Ask a query. Its idempotency key is made here, so that it can be shown after any error."""
    asked = asked_of(session.arguments, session.client, session.stdin)
    key = session.arguments.idempotency_key or str(uuid.uuid4())
    try:
        answer = asked.ask(key)
    except (SparingError, KeyboardInterrupt) as error:
        if not isinstance(error, _NOTHING_HAPPENED):
            session.err.write(f"Repeat it with --idempotency-key {printable(key)}; it is charged only once.\n")
        raise
    session.show_priced(answer, lambda told: answer_text(told, unit=_unit(session, told)))


def _preview(session: _Session) -> None:
    preview = asked_of(session.arguments, session.client, session.stdin).preview()
    session.show_priced(preview, lambda told: preview_text(told, unit=_unit(session, told)))


def _unit(session: _Session, told: Answer | Preview) -> str:
    """The unit of a query's cost: rho for Gaussian noise, and the dataset's unit for Laplace noise.

    It is empty if the dataset cannot be read, so that an answer is shown even so.
    """
    if told.scale is None:
        return "rho"
    try:
        return session.client.datasets.get(dataset=session.arguments.dataset).unit
    except SparingError:
        return ""


def _units(session: _Session) -> dict[str, str]:
    """The unit of each dataset."""
    return {each.name: each.unit for each in session.client.datasets.list()}


def _history(session: _Session) -> None:
    limit = session.arguments.limit
    if limit < 1:
        raise UsageError(f"--limit must be at least 1, got {limit}")
    shown = steps_table if session.arguments.steps else history_table
    releases = list(islice(session.client.queries.list(page_size=min(limit, PAGE_SIZE)), limit))
    session.show(releases, lambda found: shown(found, _units(session)))


def _allowances(session: _Session) -> None:
    session.show(list(session.client.allowances.list()), lambda found: allowances_table(found, _units(session)))


_COMMANDS: Mapping[str, Callable[[_Session], None]] = {
    "datasets": _datasets,
    "show": _show,
    "query": _query,
    "preview": _preview,
    "history": _history,
    "allowances": _allowances,
}


def _told(error: SparingError) -> str:
    """The text of a failure: a problem's title, its detail and its fields."""
    if not isinstance(error, APIStatusError):
        return f"{printable(error)}\n"
    fields = [f"  {printable(each.field)}: {printable(each.message)}" for each in error.errors]
    is_said = error.detail == error.title or (
        error.errors and all(each.message in error.detail for each in error.errors)
    )
    detail = [] if is_said else [f"  {printable(error.detail)}"]
    request = [] if error.request_id is None else [f"  request {printable(error.request_id)}"]
    return "\n".join([f"{error.status} {printable(error.title)}", *detail, *fields, *request, ""])


def _json(found: Any) -> str:  # noqa: ANN401 - a model or several
    models = [_document(each) for each in found] if isinstance(found, list) else _document(found)
    return printable_json(json.dumps(models, default=_plain, ensure_ascii=False, indent=2))


def _document(model: Any) -> dict[str, Any]:  # noqa: ANN401 - a model
    """The fields of a model as a JSON object; averages are given by their numbers and the ends of their intervals."""
    if not isinstance(model, Answer):
        return dataclasses.asdict(model)
    document = dataclasses.asdict(dataclasses.replace(model, averages=()))
    del document["averages"]
    around = [(each, each.interval()) for each in model.averages]
    averages = [
        {"label": dict(each.label), "value": each.value, "low_95": ends.low, "high_95": ends.high}
        for each, ends in around
    ]
    return document | ({"averages": averages} if averages else {})


def _plain(value: object) -> str | list[object]:
    if isinstance(value, Labels):
        return []  # as the service sends them; the axes say all
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no JSON")
