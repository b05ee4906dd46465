"""The commands on ledgers: `sparing ledger verify | reconcile | rebuild-answer | prune | what-if`."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Optional

import typer

from service.cli.options import Home, fail, opened_service, tell, tell_whole_losses, whole
from service.cli.progress import ProgressLines
from service.cli.what_if import what_if
from service.numerals import decimal_of, is_digits

ledger = typer.Typer(no_args_is_help=True, help="The ledger: verify, reconcile, rebuild-answer, prune, what-if.")
ledger.command("what-if")(what_if)


@ledger.command()
def verify(home: Home = None) -> None:
    """Derive anew what can be derived, and compare. Exit status 0 when all is well, 1 with the rows named."""
    from service.maintenance.verify.report import verify_all

    watch = partial(ProgressLines().see, unit="entries")
    with opened_service(home) as opened:
        findings = datasets = 0
        for report in verify_all(opened.store, opened.witness, watch=watch):
            datasets += 1
            findings += len(report.findings)
            for finding in report.findings:
                tell(f"{report.dataset}: {finding}", is_error=True)
            tell(report)
        findings += tell_whole_losses(opened)
        if datasets == 0:
            tell("no dataset is registered here")
    if findings:
        raise typer.Exit(1)


@ledger.command()
def reconcile(
    dataset: Annotated[str, typer.Option(help="The dataset that is closed.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without this, only say what would be done.")] = False,
    burn_rho: Annotated[Optional[str], typer.Option(help="The least rho to burn, if the witness is lost.")] = None,  # noqa: UP045
    home: Home = None,
) -> None:
    """Open a dataset again whose database is behind its witness, by burning the lost charges for every individual."""
    from service.maintenance.reconcile import after, before, reconcile_plan
    from service.maintenance.reconcile import reconcile as run_reconcile
    from service.run.adapters import now

    units = None if burn_rho is None else _units(burn_rho)
    with opened_service(home) as opened:
        plan = reconcile_plan(opened.store, opened.witness, dataset, burn_units=units)
        for line in before(plan):
            tell(f"{dataset}: {line}")
        if plan is not None and not yes:
            fail("nothing was done yet; add --yes to do it")
        done = run_reconcile(opened.store, opened.witness, dataset, burn_units=units, clock=now)
        for line in after(done):
            tell(f"{dataset}: {line}")


@ledger.command()
def rebuild_answer(
    dataset: Annotated[str, typer.Option(help="The dataset.")],
    sequence: Annotated[int, typer.Option(parser=whole(1), help="The ledger row whose answer is missing.")],
    key: Annotated[str, typer.Option(help="The Idempotency-Key under which the analyst had it.")],
    reuse: Annotated[bool, typer.Option("--reuse/--no-reuse", help="The value of `reuse` in the request.")] = True,
    home: Home = None,
) -> None:
    """Put back an answer that was deleted, under its key, from its ledger row. Works while `serve` runs."""
    from service.maintenance.rebuild_answer import rebuild

    with opened_service(home) as opened:
        rebuilt = rebuild(opened.store, dataset, seq=sequence, key=key, reuse=reuse)
    done = "was there already" if rebuilt is None else "is there again"
    tell(f"{dataset}: the answer to ledger row {sequence} {done}; nothing was charged")


@ledger.command()
def prune(
    dataset: Annotated[str, typer.Option(help="The dataset.")],
    before: Annotated[str, typer.Option(help="A ledger sequence, or a date or time (UTC) such as 2026-01-31.")],
    home: Home = None,
) -> None:
    """Verify the ledger, and drop what its entries before a sequence or a date say of people. Works beside `serve`."""
    from service.maintenance.prune import Damaged
    from service.maintenance.prune import prune as run_prune
    from service.store.entropy import system_entropy

    bound = _bound(before)
    with opened_service(home) as opened:
        try:
            done = run_prune(opened.store, opened.witness, dataset, before=bound, entropy=system_entropy)
        except Damaged as refusal:
            for finding in refusal.report.findings:
                tell(f"{dataset}: {finding}", is_error=True)
            fail("the ledger does not verify; nothing was pruned")
    tell(f"{dataset}: pruned up to sequence {done.seq}; before, up to {done.seq_before}")


def _bound(before: str) -> int | datetime:
    """A sequence, or an instant in UTC."""
    try:
        if is_digits(before):
            return int(before)
        instant = datetime.fromisoformat(before)
        return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    except ValueError:
        fail("before must be a sequence, or a date or time such as 2026-01-31 or 2026-01-31T12:00")


def _units(rho: str) -> int:
    """Units of a burn, rounded up: it may be too large, never too small."""
    from service.core.charge import UNITS_PER_RHO

    try:
        stated = decimal_of(rho)
    except ValueError:
        stated = Decimal(-1)
    if not 0 <= stated <= 2**20:
        fail("burn-rho must be a decimal number between 0 and 2^20")
    return math.ceil(Fraction(stated) * UNITS_PER_RHO)
