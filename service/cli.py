"""The command line: `sparing serve | keys create | ledger ... | migrate | calibrate | demo`."""

import math
import os
import sys
from contextlib import closing
from dataclasses import asdict, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, NoReturn, Optional

import typer

from service.settings import Settings, SettingsError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
keys = typer.Typer(no_args_is_help=True, help="API keys.")
ledger = typer.Typer(no_args_is_help=True, help="The ledger: verify, reconcile, rebuild-answer.")
app.add_typer(keys, name="keys")
app.add_typer(ledger, name="ledger")

Home = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it at run time
    typer.Option(help="The home of this deployment; by default SPARING_HOME, else ~/.local/share/sparing."),
]


class RoleName(StrEnum):
    """The roles."""

    curator = "curator"
    analyst = "analyst"
    individual = "individual"
    auditor = "auditor"


@app.command()
def serve(
    home: Home = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8000,
    metrics_port: Annotated[
        Optional[int],  # noqa: UP045 - as above
        typer.Option(min=0, max=65535, help="Port of /metrics; by default SPARING_METRICS_PORT, else none."),
    ] = None,
    workers: Annotated[
        Optional[int],  # noqa: UP045 - as above
        typer.Option(min=1, help="How many processes serve; by default SPARING_WORKERS, else 1."),
    ] = None,
) -> None:
    """Serve. Prints one line `ready http://host:port` when connections are taken, then where the metrics are."""
    from service.failpoints import ChaosRefused, arm

    settings = _settings(home)
    if metrics_port is not None:
        settings = replace(settings, metrics_port=metrics_port)
    if workers is not None:
        settings = replace(settings, workers=workers)
    try:
        arm(os.environ, host=host)
    except ChaosRefused as refusal:
        _fail(str(refusal))
    _serve(settings, host=host, port=port)


def _serve(settings: Settings, *, host: str, port: int) -> None:
    """From this process, or from as many as the settings say."""

    def ready(url: str) -> None:
        print(f"ready {url}", flush=True)

    def measured(url: str) -> None:
        print(f"metrics {url}", flush=True)

    if settings.workers == 1:
        from service.main import serve as serve_house

        serve_house(settings, host=host, port=port, ready=ready, measured=measured)
        return
    from service.workers import WorkersFailed, serve_with_workers

    try:
        serve_with_workers(settings, host=host, port=port, ready=ready, measured=measured)
    except WorkersFailed as failure:
        _fail(str(failure))


@keys.command()
def create(
    role: Annotated[RoleName, typer.Option(help="What the key is for.")],
    name: Annotated[str, typer.Option(help="Who holds it.")],
    dataset: Annotated[Optional[str], typer.Option(help="The one dataset it is good for.")] = None,  # noqa: UP045
    individual: Annotated[Optional[str], typer.Option(help="Whose own budget it shows.")] = None,  # noqa: UP045
    allowance_rho: Annotated[Optional[str], typer.Option(help="An analyst's worst-case allowance.")] = None,  # noqa: UP045
    home: Home = None,
) -> None:
    """Create a principal and print its key, alone, on one line. Works while `serve` runs on the same home."""
    from service.premises import premises
    from service.workflows.errors import WorkflowError

    with premises(_settings(home)) as opened:
        try:
            _, api_key = opened.house.create_principal(
                role=role.value,
                name=name,
                dataset=dataset,
                individual=individual,
                allowance_rho=None if allowance_rho is None else Decimal(allowance_rho),
            )
        except (WorkflowError, ArithmeticError) as refusal:
            _fail(str(refusal) or "allowance-rho must be a decimal number")
        print(api_key)


@ledger.command()
def verify(home: Home = None) -> None:
    """Derive anew what can be derived, and compare. Exit status 0 when all is well, 1 with the rows named."""
    from service.premises import premises
    from service.workflows.verifying import verify_all

    settings = _settings(home)
    _refuse_missing(settings)
    with premises(settings) as opened:
        findings = datasets = 0
        for report in verify_all(opened.store, opened.witness):
            datasets += 1
            findings += len(report.findings)
            for finding in report.findings:
                print(f"{report.dataset}: {finding}", file=sys.stderr)
            print(report)
        if datasets == 0:
            print("no dataset is registered here")
    if findings:
        raise typer.Exit(1)


@ledger.command()
def reconcile(
    dataset: Annotated[str, typer.Option(help="The dataset that is closed.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without this, only say what would be done.")] = False,
    burn_rho: Annotated[Optional[str], typer.Option(help="What to burn at least; needed on a lost witness.")] = None,  # noqa: UP045
    home: Home = None,
) -> None:
    """Open a dataset again whose database is behind its witness, by burning for everybody what was lost."""
    from service.adapters import now
    from service.premises import premises
    from service.workflows.errors import WorkflowError
    from service.workflows.reconciling import after, before, plan_of
    from service.workflows.reconciling import reconcile as run_reconcile

    units = None if burn_rho is None else _units(burn_rho)
    with premises(_settings(home)) as opened:
        try:
            plan = plan_of(opened.store, opened.witness, dataset, burn_units=units)
            for line in before(plan):
                print(f"{dataset}: {line}", flush=True)
            if plan is not None and not yes:
                _fail("nothing was done yet; add --yes to do it")
            done = run_reconcile(opened.store, opened.witness, dataset, burn_units=units, clock=now)
        except WorkflowError as refusal:
            _fail(str(refusal))
        for line in after(done):
            print(f"{dataset}: {line}")


@ledger.command()
def rebuild_answer(
    dataset: Annotated[str, typer.Option(help="The dataset.")],
    sequence: Annotated[int, typer.Option(min=1, help="The ledger row whose answer is missing.")],
    key: Annotated[str, typer.Option(help="The Idempotency-Key under which the analyst had it.")],
    reuse: Annotated[bool, typer.Option("--reuse/--no-reuse", help="What the request had said of `reuse`.")] = True,
    home: Home = None,
) -> None:
    """Put back an answer that was deleted, under its key, from its ledger row. Works while `serve` runs."""
    from service.premises import premises
    from service.workflows.errors import WorkflowError
    from service.workflows.rebuilding import rebuild

    with premises(_settings(home)) as opened:
        try:
            rebuilt = rebuild(opened.store, dataset, seq=sequence, key=key, reuse=reuse)
        except WorkflowError as refusal:
            _fail(str(refusal))
    done = "was there already" if rebuilt is None else "is there again"
    print(f"{dataset}: the answer to ledger row {sequence} {done}; nothing was charged")


@app.command()
def migrate(
    home: Home = None,
    folder: Annotated[Optional[Path], typer.Option("--from", help="The folder of migrations.")] = None,  # noqa: UP045
) -> None:
    """Bring the database to the newest schema."""
    from service.home import servers_of
    from service.store.postgres.migrate import migrate as run_migrations

    settings = _settings(home)
    with servers_of(settings) as servers:
        run_migrations(servers.database_url, folder=folder or settings.migrations)


@app.command()
def calibrate(home: Home = None) -> None:
    """Measure how fast this machine works, on synthetic people, and keep the result in the home."""
    from service.home import servers_of
    from service.speed import calibrate as measure

    settings = _settings(home)
    with servers_of(settings) as servers:
        from service.adapters import store_of

        with closing(store_of(settings, servers)) as store:
            speed = measure(settings, store)
    for name, value in asdict(speed).items():
        typer.echo(f"{name:18} {value:14,.2f} ns")


@app.command()
def demo(
    home: Home = None,
    stay: Annotated[bool, typer.Option("--stay", help="Serve on afterwards, until Ctrl-C.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 0,
) -> None:
    """Register real data, ask 294 questions, show what was answered and who was charged."""
    from service.demo import DemoFailed
    from service.demo import demo as run_demo

    try:
        run_demo(_settings(home), host=host, port=port, stay=stay)
    except DemoFailed as failure:
        _fail(str(failure))


def main() -> None:
    """The console script; known failures are one line on stderr, not a traceback."""
    # Nothing here multiplies matrices, and the threads for it take as long to start as a fifth of all imports.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app()
    except Exception as error:
        from service.failures import KNOWN  # to know all failures is to import half of the service

        if not isinstance(error, (*KNOWN, SettingsError)):
            raise
        _fail(str(error))


def _settings(home: Path | None) -> Settings:
    try:
        return Settings.of(os.environ, home=home)
    except SettingsError as error:
        _fail(str(error))


def _refuse_missing(settings: Settings) -> None:
    """Fail without a database: a search for damage must not see a new, empty house in the place of one elsewhere."""
    from service.store.embedded.home import find_home

    if settings.database_url is None and find_home(settings.home) is None:
        _fail(f"there is no database of a deployment in {settings.home}: nothing was verified")


def _units(rho: str) -> int:
    """Units of a burn, rounded up: it may be too large, never too small."""
    from service.core.units import UNITS_PER_RHO

    try:
        stated = Decimal(rho)
        is_within = 0 <= stated <= 2**20
    except ArithmeticError:
        is_within = False
    if not is_within:
        _fail("burn-rho must be a decimal number between 0 and 2^20")
    return math.ceil(Fraction(stated) * UNITS_PER_RHO)


def _fail(message: str) -> NoReturn:
    print(f"sparing: {message}", file=sys.stderr)
    raise SystemExit(1)
