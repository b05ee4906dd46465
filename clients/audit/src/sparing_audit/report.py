"""The report of an audit, as text for people and as JSON for programs."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from sparing._printable import printable, printable_json
from sparing_audit.accountings import OF_RULES
from sparing_audit.audit import AuditReport, Part
from sparing_audit.checks import P_MIN, Check

NAME_WIDTH: Final = 18


def as_text(report: AuditReport) -> str:
    """The report line by line: each check over all adversaries, each failed check of a single one, and the verdict."""
    return "\n".join(map(printable, _lines(report))) + "\n"


def as_json(report: AuditReport) -> str:
    """Every check of every rule and adversary. Numbers that JSON does not have, such as infinity, are null."""
    document = {
        "passed": report.passed,
        "victims": report.victims,
        "seed": report.seed,
        "budget": {"rho": OF_RULES.amount, "mu": OF_RULES.deviation},
        "offered": asdict(report.offered),
        "rules": [{"rule": part.rule, **_document(part)} for part in report.rules],
        "accountings": [
            {"accounting": part.accounting, "rule": part.rule, "budget": part.amount, **_document(part)}
            for part in report.accountings
        ],
    }
    return printable_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def _document(part: Part) -> dict[str, object]:
    return {
        "passed": all(check.passed for check in part.checks),
        "queries": part.queries,
        "seconds": round(part.seconds, 3),
        "checks": [_finite(asdict(check)) for check in part.checks],
    }


def _lines(report: AuditReport) -> Iterator[str]:
    offered = f"datasets {', '.join(report.offered.datasets)}; queries {', '.join(report.offered.queries)}"
    yield f"{report.victims:,} victims, half of them blank; seed {report.seed}; rules offered for {offered}"
    for part in (*report.rules, *report.accountings):
        yield ""
        if part.accounting is None:
            yield f"{part.rule}: {part.queries} queries in {part.seconds:.0f} s"
        else:
            yield (
                f"{part.accounting}, rule {part.rule}, a budget of {part.amount:g}: {part.queries} queries with "
                f"Gaussian or Laplace noise in {part.seconds:.0f} s"
            )
        yield from (_line(check) for check in part.checks if check.adversary is None or not check.passed)
        yield from _summed_up(part)
    failed = sum(not check.passed for check in report.checks)
    audited = ", ".join(part.rule for part in report.rules) or "none, so that nothing is shown"
    accountings = ", ".join(part.accounting or "" for part in report.accountings)
    yield ""
    yield (
        f"{'passed' if report.passed else 'FAILED'}: {failed} of {len(report.checks)} checks failed; "
        f"rules audited: {audited}{'; accountings: ' if accountings else ''}{accountings}"
    )


def _line(check: Check) -> str:
    state, where = "ok" if check.passed else "FAILED", "" if check.adversary is None else f" [{check.adversary}]"
    return f"  {state:6} {check.name:{NAME_WIDTH}} {_number(check.measured)} {check.words}{where}"


def _summed_up(part: Part) -> Iterator[str]:
    """A line on the least likely p-value among the passed checks of single adversaries."""
    passed = [check for check in part.checks if check.adversary is not None and check.passed and check.bound == P_MIN]
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
