"""The commands on ledgers: `sparing ledger verify | reconcile | rebuild-answer | prune | what-if`."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from service.cli.options import Home, fail, opened_service, tell, tell_whole_losses, whole
from service.cli.progress import ProgressLines
from service.numerals import decimal_of, is_digits

if TYPE_CHECKING:
    from service.accounting.accountings import Accounting
    from service.ledger.model.stated_guarantee import StatedGuarantee
    from service.maintenance.supposed_replay import QueryOutcome
    from service.maintenance.what_if import WhatIf

_WARNING = "not for release: these numbers are exact and depend on every record"
_COLUMNS = ("sequence", "counted", "shortened", "left_out", "paused", "unknown")
_Stated = Optional[str]  # noqa: UP045 - typer reads it at run time

ledger = typer.Typer(no_args_is_help=True, help="The ledger: verify, reconcile, rebuild-answer, prune, what-if.")


@ledger.command("what-if")
def what_if(  # noqa: PLR0913, PLR0917 - an option each
    dataset: Annotated[str, typer.Option(help="The dataset.")],
    rule: Annotated[
        Optional[Literal["skip", "drop", "clip"]],  # noqa: UP045 - as above
        typer.Option(help="The rule to suppose; by default each query's own."),
    ] = None,
    epsilon: Annotated[_Stated, typer.Option(help="The budget to suppose, with --delta.")] = None,
    delta: Annotated[_Stated, typer.Option(help="The delta of that budget.")] = None,
    rho: Annotated[_Stated, typer.Option(help="The budget to suppose in rho instead.")] = None,
    accounting: Annotated[
        _Stated, typer.Option(help="The accounting to suppose, as a registration states it: gdp, or an object of JSON.")
    ] = None,
    queries: Annotated[bool, typer.Option("--queries", help="A row for each query, before the totals.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    home: Home = None,
) -> None:
    """Replay a ledger under another rule, accounting or budget. Changes nothing; for operators, not for release.

    With an accounting alone the budget is the one that it gives for the dataset's own epsilon and delta.
    """
    from service.maintenance.supposed_replay import NoBudget, NormsMissing
    from service.maintenance.what_if import what_if as replay

    supposed = _guarantee(epsilon=epsilon, delta=delta, rho=rho)
    other = _accounting(accounting)
    rows: list[dict[str, float]] = []

    def keep(outcome: "QueryOutcome") -> None:
        rows.append({name: getattr(outcome, name) for name in (*_COLUMNS, "kept")})

    with opened_service(home) as opened:
        try:
            found = replay(
                opened.store,
                dataset,
                rule=rule,
                guarantee=supposed,
                accounting=other,
                tell=keep if queries else None,
                watch=partial(ProgressLines().see, unit="entries"),
            )
        except (NormsMissing, NoBudget) as refusal:
            fail(str(refusal))
    if as_json:
        by_query = {"by_query": rows} if queries else {}
        print(json.dumps({"not_for_release": True, **by_query, **_document(found)}, indent=2))
        return
    print(_WARNING)
    if queries:
        print(" ".join(f"{name.replace('_', ' '):>10}" for name in _COLUMNS))
    for row in rows:
        print(" ".join(f"{row[name]:>10,}" for name in _COLUMNS))
    for name, text in _facts(found):
        tell(f"{name:24} {text}")


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


def _guarantee(**stated: str | None) -> "StatedGuarantee | None":
    """The budget that is supposed, read as a registration reads it; None where none is stated."""
    from pydantic import ValidationError

    from service.ledger.model.stated_guarantee import StatedGuarantee

    given = {name: text for name, text in stated.items() if text is not None}
    if not given:
        return None
    try:
        return StatedGuarantee.model_validate(given)
    except ValidationError as refusal:
        first = refusal.errors()[0]
        fail(" ".join([*map(str, first["loc"]), first["msg"].removeprefix("Value error, ")]))


def _accounting(text: str | None) -> "Accounting | None":
    """The accounting that is supposed, read as a registration reads it; None where none is stated."""
    from pydantic import ValidationError

    from service.accounting.accountings import accounting_of
    from service.ledger.model.stated_guarantee import STATED_ACCOUNTING

    if text is None:
        return None
    try:
        stated = STATED_ACCOUNTING.validate_python(text if text == "gdp" else json.loads(text))
        return accounting_of(STATED_ACCOUNTING.dump_python(stated))
    except json.JSONDecodeError:
        fail("accounting: neither gdp nor an object of JSON")
    except ValidationError as refusal:
        first = refusal.errors()[-1]
        fail(" ".join(["accounting:", *map(str, first["loc"][1:]), first["msg"]]))


def _facts(found: "WhatIf") -> list[tuple[str, str]]:
    """The totals in words."""
    near = " (approximate, by norms alone)" if found.rule == "clip" else ""
    first = "none" if found.first_incomplete is None else f"{found.first_incomplete:,}"
    share, delta = found.largest_units / found.budget_units, found.delta
    facts = [
        ("dataset", found.record.name),
        ("rule", f"{found.rule}{near}; its own is {found.record.rule}"),
        ("accounting", f"{_named(found.accounting)}; its own is {_named(found.record.accounting)}"),
        ("budget", f"{_rho(found.budget_units)} {found.accounting.unit}; its own is {_rho(found.record.budget_units)}"),
        ("queries", f"{found.queries:,}, and {found.burns:,} burns"),
        ("contributions", f"{found.contributions:,}"),
        ("kept", f"{100 * found.share_kept:.3f} %; the ledger itself {100 * found.share_kept_here:.3f} %"),
        ("shortened", f"{found.shortened:,}"),
        ("left out", f"{found.left_out:,}, of them {found.paused:,} paused"),
        ("first incomplete query", first),
        ("largest loss", f"{share:.4f} of the budget, epsilon {found.largest_epsilon:.4g} at delta {delta}"),
    ]
    if found.ticks:
        facts.append(("ticks", f"{found.ticks:,} of the monitor, which are prepaid and in no other number"))
    if found.unknown:
        facts.append(("erased since", f"{found.unknown:,} contributions, whose norms are not kept: counted nowhere"))
    if found.returned:
        facts.append(("erased and back", f"{found.returned:,} individuals, of whose earlier spending a least is known"))
    return facts


def _named(accounting: "Accounting") -> str:
    """An accounting in a few words."""
    document = accounting.document
    return document if isinstance(document, str) else " ".join(map(str, document.values()))


def _document(found: "WhatIf") -> Mapping[str, Any]:
    """The totals as JSON; `share_kept_here` is of the ledger as it is."""
    return {
        "dataset": found.record.name,
        "rule": found.rule,
        "own_rule": found.record.rule,
        "is_approximate": found.rule == "clip",
        "accounting": found.accounting.document,
        "own_accounting": found.record.accounting.document,
        "budget_rho": _rho(found.budget_units),
        "own_budget_rho": _rho(found.record.budget_units),
        "queries": found.queries,
        "burns": found.burns,
        "ticks": found.ticks,
        "contributions": found.contributions,
        "kept": found.kept,
        "share_kept": found.share_kept,
        "share_kept_here": found.share_kept_here,
        "shortened": found.shortened,
        "left_out": found.left_out,
        "paused": found.paused,
        "unknown": found.unknown,
        "returned": found.returned,
        "first_incomplete": found.first_incomplete,
        "largest_spent_rho": _rho(found.largest_units),
        "largest_share_of_budget": found.largest_units / found.budget_units,
        "largest_epsilon": found.largest_epsilon,
        "delta": str(found.delta),
    }


def _rho(units: int) -> str:
    from service.core.charge import rho_of_units

    return f"{rho_of_units(units):f}"
