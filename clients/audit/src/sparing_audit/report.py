"""The report of an audit, as text for people and as JSON for programs."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from sparing._printable import printable, printable_json
from sparing_audit.audit import AccountingReport, AuditReport, RuleReport
from sparing_audit.checks import MU, P_MIN, Check
from sparing_audit.game import RHO

__all__ = ["as_json", "as_text"]

NAME_WIDTH: Final = 18


def as_text(report: AuditReport) -> str:
    """Line by line: each check over all adversaries, each failed check of one, and the verdict."""
    return "\n".join(map(printable, _lines(report))) + "\n"


def as_json(report: AuditReport) -> str:
    """Every check of every rule and adversary. Numbers that JSON has not, such as infinity, are null."""
    document = {
        "passed": report.passed,
        "victims": report.victims,
        "seed": report.seed,
        "budget": {"rho": RHO, "mu": MU},
        "offered": asdict(report.offered),
        "rules": [
            {
                "rule": rule.rule,
                "passed": rule.passed,
                "queries": rule.queries,
                "seconds": round(rule.seconds, 3),
                "checks": [_finite(asdict(check)) for check in rule.checks],
            }
            for rule in report.rules
        ],
        "accountings": [
            {
                "accounting": each.accounting,
                "rule": each.rule,
                "budget": each.amount,
                "passed": each.passed,
                "queries": each.queries,
                "seconds": round(each.seconds, 3),
                "checks": [_finite(asdict(check)) for check in each.checks],
            }
            for each in report.accountings
        ],
    }
    return printable_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def _lines(report: AuditReport) -> Iterator[str]:
    offered = f"datasets {', '.join(report.offered.datasets)}; queries {', '.join(report.offered.queries)}"
    yield f"{report.victims:,} victims, half of them blank; seed {report.seed}; rules offered for {offered}"
    for rule in report.rules:
        yield ""
        yield f"{rule.rule}: {rule.queries} queries in {rule.seconds:.0f} s"
        yield from _checked(rule)
    for each in report.accountings:
        yield ""
        yield (
            f"{each.accounting}, rule {each.rule}, a budget of {each.amount:g}: {each.queries} queries with Gaussian "
            f"or Laplace noise in {each.seconds:.0f} s"
        )
        yield from _checked(each)
    failed = sum(not check.passed for check in report.checks)
    audited = ", ".join(rule.rule for rule in report.rules) or "none, so that nothing is shown"
    accountings = "".join(f", {each.accounting}" for each in report.accountings)
    yield ""
    yield (
        f"{'passed' if report.passed else 'FAILED'}: {failed} of {len(report.checks)} checks failed; "
        f"rules audited: {audited}{accountings.replace(',', '; accountings:', 1)}"
    )


def _checked(part: RuleReport | AccountingReport) -> Iterator[str]:
    for check in part.checks:
        if check.adversary is None or not check.passed:
            yield _line(check)
    yield from _summed_up(part)


def _line(check: Check) -> str:
    state, where = "ok" if check.passed else "FAILED", "" if check.adversary is None else f" [{check.adversary}]"
    return f"  {state:6} {check.name:{NAME_WIDTH}} {_number(check.measured)} {check.words}{where}"


def _summed_up(rule: RuleReport | AccountingReport) -> Iterator[str]:
    """Of the checks of single adversaries by a p-value, the least likely one that passed."""
    passed = [check for check in rule.checks if check.adversary is not None and check.passed and check.bound == P_MIN]
    if passed:
        least = min(passed, key=lambda check: check.measured)
        words = f"the least p of {len(passed)} checks of single adversaries: {least.name} of {least.adversary}"
        yield f"  ok     {'single adversaries':{NAME_WIDTH}} {_number(least.measured)} {words}"


def _number(number: float) -> str:
    return f"{number:>9.3g}" if number == 0 or abs(number) >= 1e-3 else f"{number:>9.0e}"


def _finite(fields: dict[str, object]) -> dict[str, object]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in fields.items()
    }
