"""`sparing ledger what-if`: a ledger under another rule, accounting or budget, as a short table or as JSON."""

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from service.cli.options import Home, fail, opened_service, tell
from service.cli.progress import ProgressLines

if TYPE_CHECKING:
    from service.accounting.accountings import Accounting
    from service.ledger.model.stated_guarantee import StatedGuarantee
    from service.maintenance.supposed_replay import QueryOutcome
    from service.maintenance.what_if import WhatIf

_WARNING = "not for release: these numbers are exact and depend on every record"
_COLUMNS = ("sequence", "counted", "shortened", "left_out", "paused", "unknown")
_Stated = Optional[str]  # noqa: UP045 - typer reads it at run time


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
