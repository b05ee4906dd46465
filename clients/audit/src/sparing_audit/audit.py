"""The audit from beginning to end: for each rule and accounting that the service offers, all adversaries at once."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sparing_audit.accountings import ACCOUNTINGS, OF_RULES
from sparing_audit.adversaries import ASKERS
from sparing_audit.checks import Check, accounting_checks, canary_check, rule_checks
from sparing_audit.game import Game
from sparing_audit.moves import DYADIC, offered, schedule, turns
from sparing_audit.noise import Gaussian
from sparing_audit.service import Offered, Service
from sparing_audit.victims import drawn_victims

RULES: Final = ("skip", "drop", "clip")
"""The rules that the audit knows."""

Heard = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The audit of one rule, or of one accounting under a rule."""

    rule: str
    accounting: str | None = None
    amount: float = OF_RULES.amount  # the budget
    queries: int
    seconds: float
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The audit of a service. It has passed if some rule was audited and no check failed."""

    victims: int
    seed: int
    offered: Offered
    rules: tuple[Part, ...]
    accountings: tuple[Part, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of all rules and accountings."""
        return tuple(check for part in (*self.rules, *self.accountings) for check in part.checks)

    @property
    def passed(self) -> bool:
        """Tell whether at least one rule was audited and no check failed."""
        return bool(self.rules) and not self.failed_checks

    @property
    def failed_checks(self) -> frozenset[str]:
        """The names of the checks that failed."""
        return frozenset(check.name for check in self.checks if not check.passed)


def run_audit(
    service: Service,
    *,
    victims: int,
    seed: int,
    name: str,
    rules: Sequence[str] = RULES,
    accountings: Sequence[str] = tuple(ACCOUNTINGS),
    heard: Heard = lambda _: None,
) -> AuditReport:
    """Audit a service under each of the rules that it offers, and each of its accountings.

    Args:
        service: the service, by any transport.
        victims: how many people each dataset has, half of them blank.
        seed: the seed of the audit's own choices; the service draws its own noise.
        name: the beginning of the names of the audit's datasets, which the service must not have yet.
        rules: the rules to audit; those that the service does not offer are left out.
        accountings: the kinds of accountings to audit if offered; without Laplace noise none is audited.
        heard: called with a line for each step.

    Raises:
        Refused: the service does not accept a request that it should.
        ValueError: there are too few victims.
    """
    found, rng = service.offered(), np.random.default_rng(seed)
    of_datasets = [rule for rule in rules if rule in found.datasets] or ["skip"]
    kinds = [kind for kind in accountings if kind in found.accountings and "laplace" in found.mechanisms]
    return AuditReport(
        victims=victims,
        seed=seed,
        offered=found,
        rules=tuple(
            _of_rule(service, f"{name}-{rule}", victims, rng, rule=rule, heard=heard)
            for rule in rules
            if rule in {*found.datasets, *found.queries}
        ),
        accountings=tuple(
            _of_accounting(service, f"{name}-{kind}", victims, rng, kind=kind, rule=rule, heard=heard)
            for kind, rule in zip(kinds, itertools.cycle(of_datasets))
        ),
    )


def _of_rule(service: Service, name: str, count: int, rng: np.random.Generator, *, rule: str, heard: Heard) -> Part:
    """Canaries and adversaries under one rule."""
    began = time.monotonic()
    heard(f"{rule}: canaries")
    canaries = _canaries(service, f"{name}-canaries", count, rng, rule=rule)
    heard(f"{rule}: adversaries")
    game = Game(service, name, drawn_victims(count, rng), rng, rule=rule)
    game.play(schedule())
    checks = (*canaries, *rule_checks(game))
    queries = len(game.recorded) + len(canaries)
    return Part(rule=rule, queries=queries, seconds=time.monotonic() - began, checks=checks)


def _of_accounting(
    service: Service, name: str, count: int, rng: np.random.Generator, *, kind: str, rule: str, heard: Heard
) -> Part:
    """Audit one accounting with adversaries that choose between mechanisms, in a dataset of its own."""
    began, accounting = time.monotonic(), ACCOUNTINGS[kind]
    heard(f"{kind}: adversaries with Laplace noise")
    game = Game(service, name, drawn_victims(count, rng, ASKERS), rng, rule=rule, accounting=accounting)
    game.play(turns(offered(accounting)))
    checks, seconds = tuple(accounting_checks(game)), time.monotonic() - began
    queries, amount = len(game.recorded), accounting.amount
    return Part(rule=rule, accounting=kind, amount=amount, queries=queries, seconds=seconds, checks=checks)


def _canaries(service: Service, dataset: str, count: int, rng: np.random.Generator, *, rule: str) -> list[Check]:
    """One query that spends every budget whole, which shows mu, and the same again, which must show nothing."""
    game, law = Game(service, dataset, drawn_victims(count, rng, ["canaries"]), rng, rule=rule), Gaussian(DYADIC)
    for _ in range(2):
        game.ask(np.arange(count), np.full(count, law.longest(game.budget_units)), law, analyst=0)
    service.close(dataset)
    asked = zip(("canaries", "exhausted canaries"), (OF_RULES.deviation, 0.0), game.recorded, strict=True)
    return [canary_check(each, game.victims.is_in, name=name, mu=mu) for name, mu, each in asked]
