"""The audit as a whole: it passes a service that is right, and names what is wrong with one that is not."""

import pytest
from clients.audit.tests.fake_service import FakeService
from tests.rotation import times

from sparing_audit.audit import RULES, run_audit

VICTIMS = times(240, 480)

# Each planted mistake with the rule under which it shows and a check that rejects it: one that has its name.
MISTAKES = {
    "sum of row norms": ("skip", "charges"),
    "sigma for sigma^2": ("skip", "charges"),
    "missing 1/2": ("skip", "charges"),
    "charge of the unshortened vector": ("clip", "charges"),
    "stale spent total": ("skip", "active sets"),
    "refund at erasure": ("skip", "charges"),
    "refund at correction": ("skip", "charges"),
    "noise reused": ("skip", "noise reused"),
    "float sums": ("skip", "charges"),
    "one ledger for each analyst": ("skip", "active sets"),
    "drop reset by a checkpoint": ("drop", "active sets"),
    "charge rounded down": ("skip", "charges"),
    "charge for half the noise": ("skip", "charges"),
    "refund at return": ("skip", "charges"),
    "erased records counted": ("skip", "charges"),
    "pauses ignored": ("drop", "active sets"),
    "batches checked before they are charged": ("skip", "active sets"),
    "retries charged again": ("skip", "retries"),
    "reuse answered anew": ("skip", "retries"),
    "keys good for anything": ("skip", "retries"),
    "left out and charged": ("skip", "charges"),
    "left out and added": ("skip", "left out"),
    "noise of a uniform law": ("skip", "noise law"),
    "noise added in floats": ("skip", "noise steps"),
    "one noise for all coordinates": ("skip", "noise reused"),
}
# Mistakes that only many victims show: a standard deviation that is 3 % off has a z of 9 in 50,000 numbers.
FAINT_MISTAKES = {
    "noise 3 % too small": ("skip", "noise size"),
    "shortened to a half of what is charged": ("clip", "shortened"),
}


@pytest.mark.parametrize("seed", range(3))
def test_a_service_that_is_right_passes(seed: int) -> None:
    """Under all rules, whatever the noise and the audit's own choices."""
    report = run_audit(FakeService(seed=seed), victims=VICTIMS, seed=seed, name="audit")

    assert report.failed_checks == frozenset()
    assert report.passed
    assert [rule.rule for rule in report.rules] == list(RULES)


@pytest.mark.parametrize("mistake", MISTAKES | FAINT_MISTAKES)
def test_a_planted_mistake_is_named(mistake: str) -> None:
    """By the check that it is planted against."""
    rule, check = (MISTAKES | FAINT_MISTAKES)[mistake]
    victims = 2048 if mistake in FAINT_MISTAKES else VICTIMS
    report = run_audit(FakeService(mistake=mistake), victims=victims, seed=1, name="audit", rules=[rule])

    assert not report.passed
    assert check in report.failed_checks


def test_two_mistakes_are_told_apart() -> None:
    """A mistake that only the noise shows fails no comparison, and the other way round."""
    for mistake, check in (("noise added in floats", "noise steps"), ("keys good for anything", "retries")):
        report = run_audit(FakeService(mistake=mistake), victims=VICTIMS, seed=1, name="audit", rules=["skip"])
        assert report.failed_checks == {check}


def test_what_is_not_offered_is_not_audited() -> None:
    """The report says what was, and both steps of each rule are told; nothing is left open, and nothing is no pass."""
    service, heard = FakeService(rules=("skip",), query_rules=()), list[str]()
    report = run_audit(service, victims=VICTIMS, seed=1, name="audit", heard=heard.append)

    assert [rule.rule for rule in report.rules] == ["skip"]
    assert report.offered.datasets == ("skip",)
    assert report.passed
    assert heard == ["skip: canaries", "skip: adversaries"]
    assert service.stored == {}
    nothing = run_audit(FakeService(rules=("other",), query_rules=()), victims=VICTIMS, seed=1, name="audit")
    assert not nothing.passed


def test_accountings_are_audited_by_turns_under_the_rules_of_datasets() -> None:
    """Those that are offered and asked for; with `clip` alone under `skip`. A mistake of one fails the audit."""
    service = FakeService(accountings=("gdp", "zcdp", "pure"), mistake="half the Laplace noise")
    kinds = ["pure", "rdp", "zcdp"]
    report = run_audit(service, victims=VICTIMS, seed=1, name="audit", rules=["drop", "skip"], accountings=kinds)
    clipped = run_audit(service, victims=VICTIMS, seed=1, name="audit", rules=["clip"], accountings=["gdp"])

    assert [(each.accounting, each.rule) for each in report.accountings] == [("pure", "drop"), ("zcdp", "skip")]
    assert [(each.accounting, each.rule) for each in clipped.accountings] == [("gdp", "skip")]
    assert all(check.passed for rule in report.rules for check in rule.checks)
    assert report.failed_checks >= {"noise size"}
    assert not report.passed
    assert service.stored == {}
