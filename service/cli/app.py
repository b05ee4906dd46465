"""The command line of `sparing`: `serve`, `migrate`, `doctor`, `backup`, `restore`, `demo`, `audit`, and groups."""

import json
import os
import shlex
import sys
from contextlib import closing
from dataclasses import asdict
from functools import partial
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from service.cli.keys import keys
from service.cli.ledger import ledger
from service.cli.options import PORT, Home, existing_settings_of, fail, settings_of, tell, whole

if TYPE_CHECKING:
    from service.settings.settings import Settings

VICTIMS, SEED = whole(120, 12_000), whole(0)
UNDONE = 2
"""The exit status of an audit that could not be carried out."""

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(keys, name="keys")
app.add_typer(ledger, name="ledger")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"sparing {distribution_version('sparing')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version, and end.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def audit(
    url: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it at run time
        typer.Option(help="The service to audit; by default one is started in a home that is thrown away."),
    ] = None,
    curator_key: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option(help="A curator's API key there.", envvar="SPARING_API_KEY", show_envvar=True),
    ] = None,
    victims: Annotated[int, typer.Option(parser=VICTIMS, help="How many people each dataset has.")] = 8192,
    rule: Annotated[
        Optional[list[str]],  # noqa: UP045 - as above
        typer.Option(help="A rule to audit, skip, drop or clip; may be repeated. By default all that are offered."),
    ] = None,
    accounting: Annotated[
        Optional[list[str]],  # noqa: UP045 - as above
        typer.Option(help="An accounting to audit, gdp, zcdp, rdp or pure; may be repeated. By default all of them."),
    ] = None,
    out: Annotated[Optional[Path], typer.Option(help="A file for the report as JSON.")] = None,  # noqa: UP045
    seed: Annotated[Optional[int], typer.Option(parser=SEED, help="Of the audit's own choices.")] = None,  # noqa: UP045
) -> None:
    """Attack a service by adversaries under each of its rules and accountings, and check it from outside.

    Exit status 0 where all checks passed, 1 where one failed, 2 where the audit could not be carried out. It registers
    datasets of its own, whose names begin with `audit-`, and archives them.
    """
    from service.run.audit import AuditUndone
    from service.run.audit import audit as run_audit

    key = None if url is None else curator_key
    try:
        chosen = {name: given for name, given in (("rules", rule), ("accountings", accounting)) if given}
        passed, text, document = run_audit(
            url=url, curator_key=key, tell=partial(tell, is_error=True), victims=victims, seed=seed, **chosen
        )
        if out is not None:
            out.write_text(document, encoding="utf-8")
    except (AuditUndone, OSError) as failure:
        print(f"sparing: {failure}", file=sys.stderr)
        raise SystemExit(UNDONE) from failure
    print(text, end="")
    raise SystemExit(0 if passed else 1)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of lines.")] = False,
    home: Home = None,
) -> None:
    """Look at everything that this deployment needs, and change nothing. Exit status 1 when a check has failed."""
    from service.run.doctor import examine

    results = []
    for result in examine(existing_settings_of(home)):
        results.append(result)
        if not as_json:
            tell(result)
    if as_json:
        print(json.dumps({"results": [asdict(each) for each in results]}, indent=2))
    if any(each.state == "failed" for each in results):
        raise typer.Exit(1)


@app.command()
def backup(
    folder: Annotated[Path, typer.Argument(help="The folder to make; it must not be there yet.")], home: Home = None
) -> None:
    """Back the database up into a new folder, beside a running service; never the pepper or the witness."""
    from service.run.backup import BackupUnusable, back_up

    try:
        back_up(existing_settings_of(home), folder.absolute(), tell)
    except BackupUnusable as refusal:
        fail(str(refusal))


@app.command()
def restore(
    folder: Annotated[Path, typer.Argument(help="The folder that `sparing backup` made.")],
    aside: Annotated[
        bool, typer.Option("--aside", help="Keep a database that is not empty under another name, instead of refusing.")
    ] = False,
    home: Home = None,
) -> None:
    """Put a backup back into an empty database, and tell what was witnessed since. Nothing is overwritten."""
    from service.run.backup import BackupUnusable, put_back
    from service.store.postgres.dump import NotRestored

    try:
        put_back(settings_of(home), folder.absolute(), tell, aside=aside)
    except (BackupUnusable, NotRestored) as refusal:
        fail(str(refusal))


@app.command()
def serve(
    home: Home = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(parser=PORT, help="Port to listen on; 0 picks a free one.")] = 8000,
    metrics_port: Annotated[
        Optional[int],  # noqa: UP045 - as above
        typer.Option(parser=PORT, help="Port of /metrics; by default SPARING_METRICS_PORT, else none."),
    ] = None,
    workers: Annotated[
        Optional[int],  # noqa: UP045 - as above
        typer.Option(parser=whole(1), help="How many processes serve; by default SPARING_WORKERS, else 1."),
    ] = None,
) -> None:
    """Serve. Prints one line `ready http://host:port` when connections are taken, then where the metrics are.

    A service without a key prints in three lines how the first is made.
    """
    from service.failpoints import ChaosRefused, arm

    stated = {"metrics_port": metrics_port, "workers": workers}
    update = {name: value for name, value in stated.items() if value is not None}
    settings = settings_of(home).model_copy(update=update)
    try:
        arm(os.environ, host=host)
    except ChaosRefused as refusal:
        fail(str(refusal))
    _serve(settings, host=host, port=port)


def _serve(settings: "Settings", *, host: str, port: int) -> None:
    """Serve from this process, or from as many as the settings say, once all that they name has been tried."""
    from service.run.trials import refuse_unusable

    refuse_unusable(settings)
    ready, measured = (partial(print, word, flush=True) for word in ("ready", "metrics"))
    if settings.workers == 1:
        from service.run.serve import serve as serve_replica

        keyless = partial(_tell_first_key, settings.home)
        serve_replica(settings, host=host, port=port, ready=ready, measured=measured, keyless=keyless)
        return
    from service.run.workers import WorkersFailed, serve_with_workers

    try:
        serve_with_workers(settings, host=host, port=port, ready=ready, measured=measured)
    except WorkersFailed as failure:
        fail(str(failure))


def _tell_first_key(home: Path, url: str) -> None:
    """Print how the first key is made; it can be made while the service runs."""
    print("No key exists yet. This command, in another terminal, prints a curator's:")
    print(f"  sparing keys create --role curator --name curator --home {shlex.quote(str(home))}")
    print(f"Sign in with it at {url}/sign-in, or give it to a client as SPARING_API_KEY.", flush=True)


@app.command()
def migrate(home: Home = None) -> None:
    """Bring the database to the newest schema, and say what was done."""
    from service.run.home import servers_of
    from service.run.lost_database import refuse_to_begin
    from service.store.postgres.registrations import migrate as run_migrations

    settings = settings_of(home)
    begins = partial(refuse_to_begin, settings.witness)
    run = partial(run_migrations, tell=tell, begins=begins)
    if settings.database_url is not None:
        run(settings.database_url, wait_s=settings.start_timeout_ms / 1000)
        return
    with servers_of(existing_settings_of(home)) as servers:
        run(servers.database_url)


@app.command()
def calibrate(home: Home = None) -> None:
    """Measure how fast this machine works, on synthetic people, and keep the result in the home."""
    from service.run.home import servers_of
    from service.run.speed import calibrate as measure

    settings = existing_settings_of(home)
    with servers_of(settings) as servers:
        from service.run.adapters import store_of

        with closing(store_of(settings, servers)) as store:
            speed = measure(settings, store)
    for name, value in asdict(speed).items():
        typer.echo(f"{name:18} {value:14,.2f} ns")


@app.command()
def demo(
    home: Home = None,
    stay: Annotated[bool, typer.Option("--stay", help="Serve on afterwards, until Ctrl-C.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(parser=PORT, help="Port to listen on; 0 picks a free one.")] = 0,
) -> None:
    """Register real data, ask 294 queries, show the answers and the charges."""
    from service.run.demo import DemoFailed
    from service.run.demo import demo as run_demo

    try:
        run_demo(settings_of(home), host=host, port=port, stay=stay)
    except DemoFailed as failure:
        fail(str(failure))


# The Python client holds the logic, and not the service: the data is where the client is, and nothing of it should come
# near a server before the schema is settled. The production image holds no client, so there the command says what is
# missing; in a clone both are installed.
schema = typer.Typer(no_args_is_help=True, help="Schemas of datasets.")


@schema.callback()
def _commands() -> None:
    """Schemas of datasets."""


@schema.command()
def infer(
    file: Annotated[Path, typer.Argument(help="CSV, NDJSON, Parquet or Arrow, CSV and NDJSON also in gzip.")],
    table: Annotated[Optional[str], typer.Option(help="The table's name; by default the file's.")] = None,  # noqa: UP045
    key: Annotated[Optional[str], typer.Option(help="The column that names the individual.")] = None,  # noqa: UP045
    kind: Annotated[
        Optional[Literal["individuals", "events"]],  # noqa: UP045 - typer reads it at run time
        typer.Option(help="One row for each individual, or events; by default whether a key repeats."),
    ] = None,
) -> None:
    """Propose a schema as JSON. It reads the file here, sends nothing, and needs no home.

    Each domain read off the data carries a member `confirm`; no registration is accepted until it is removed.
    """
    try:
        from sparing import infer_schema
    except ModuleNotFoundError:
        fail("schema infer needs the Python client on this machine: pip install ./clients/python")
    try:
        proposal = infer_schema(file, table=table, key=key, kind=kind)
    except (OSError, ValueError) as error:
        fail(f"{file}: {error}")
    print(json.dumps(proposal, indent=2, ensure_ascii=False))


app.add_typer(schema, name="schema")


def main() -> None:
    """The console script; known failures are one line on stderr, not a traceback."""
    # Nothing here multiplies matrices, and the threads for it take as long to start as a fifth of all imports.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app()
    except Exception as error:
        from service.run.composition import known_failures
        from service.settings.settings import SettingsError

        if isinstance(error, MemoryError) or "start new thread" in str(error):
            fail("the system gives no more memory or threads: raise `ulimit -v`, `ulimit -u` or the container's limits")
        if not isinstance(error, (*known_failures(), SettingsError)):
            raise
        fail(_in_one_line(error))


def _in_one_line(error: Exception) -> str:
    """The words of an error. For one of the operating system: its words and the file, without the error's number."""
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    return str(error)
