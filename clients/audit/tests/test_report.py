"""The report: every check in JSON, and in text what failed, what was audited, and the verdict."""

import dataclasses
import json
import math

import pytest

from sparing_audit.audit import AuditReport, Part
from sparing_audit.checks import Check
from sparing_audit.report import as_json, as_text
from sparing_audit.service import Offered

RIGHT = Check(name="charges", passed=True, measured=0.0, bound=0.0, words="differences in 45,519 comparisons")
OF_ONE = Check(name="loss law", passed=True, measured=0.02, bound=1e-5, words="p of 64 losses", adversary="one huge")
WRONG = Check(name="loss law", passed=False, measured=3e-9, bound=1e-5, words="p of 65 losses", adversary="pauses")
ENDLESS = Check(name="delta", passed=False, measured=math.inf, bound=4.5, words="standard errors above")


def report_of(*checks: Check) -> AuditReport:
    """An audit of one rule."""
    rule = Part(rule="skip", queries=46, seconds=12.34567, checks=checks)
    return AuditReport(
        victims=8192, seed=7, offered=Offered(datasets=("skip", "drop"), queries=("skip",)), rules=(rule,)
    )


def test_a_report_that_passed_is_short() -> None:
    """Checks of single adversaries are one line."""
    assert as_text(report_of(RIGHT, OF_ONE)).splitlines() == [
        "8,192 victims, half of them blank; seed 7; rules offered for datasets skip, drop; queries skip",
        "",
        "skip: 46 queries in 12 s",
        "  ok     charges                    0 differences in 45,519 comparisons",
        "  ok     single adversaries      0.02 the least p of 1 checks of single adversaries: loss law of one huge",
        "",
        "passed: 0 of 2 checks failed; rules audited: skip",
    ]


def test_accountings_follow_the_rules_and_count() -> None:
    """Each with its budget and checks, in text and JSON; a failure of one is a failure of the audit."""
    report = report_of(RIGHT)
    accounting = Part(accounting="pure", rule="drop", amount=2.0, queries=9, seconds=1.2, checks=(WRONG,))
    report = dataclasses.replace(report, accountings=(accounting,))
    lines, document = as_text(report).splitlines(), json.loads(as_json(report))

    assert "pure, rule drop, a budget of 2: 9 queries with Gaussian or Laplace noise in 1 s" in lines
    assert lines[-1] == "FAILED: 1 of 2 checks failed; rules audited: skip; accountings: pure"
    assert report.failed_checks == {"loss law"}
    (found,) = document["accountings"]
    assert (document["passed"], found["accounting"], found["budget"], found["passed"]) == (False, "pure", 2.0, False)


def test_each_failure_has_a_line_with_its_adversary() -> None:
    """The verdict counts them; an audit of no rule has not passed, nor does it say so."""
    lines = as_text(report_of(RIGHT, OF_ONE, WRONG)).splitlines()
    assert "  FAILED loss law               3e-09 p of 65 losses [pauses]" in lines
    assert lines[-1] == "FAILED: 1 of 3 checks failed; rules audited: skip"
    nothing = dataclasses.replace(report_of(), rules=())
    words = "FAILED: 0 of 0 checks failed; rules audited: none, so that nothing is shown"
    assert not nothing.passed
    assert as_text(nothing).splitlines()[-1] == words


@pytest.mark.parametrize(("checks", "passed"), [((RIGHT, OF_ONE), True), ((RIGHT, ENDLESS), False)])
def test_the_json_has_every_check(checks: tuple[Check, ...], passed: bool) -> None:
    """Infinity is null, as JSON has no such number."""
    document = json.loads(as_json(report_of(*checks)))
    (rule,) = document["rules"]

    assert document["passed"] == rule["passed"] == passed
    assert (document["victims"], document["budget"]) == (8192, {"rho": 8, "mu": 4.0})
    assert [each["name"] for each in rule["checks"]] == [check.name for check in checks]
    assert rule["checks"][1]["measured"] == (0.02 if passed else None)
