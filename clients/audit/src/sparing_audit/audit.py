"""The audit from beginning to end: for each rule that the service offers, canaries and all adversaries."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sparing_audit.accountings import ACCOUNTINGS
from sparing_audit.checks import MU, Check, canary_check, checks_of
from sparing_audit.game import RHO, Game
from sparing_audit.mixed_game import MixedGame
from sparing_audit.own_filter import longest_within, price_of
from sparing_audit.promises import mixed_checks
from sparing_audit.schedule import DYADIC
from sparing_audit.service import UNITS_PER_RHO, MatrixQuery, Offered, Registration, Service
from sparing_audit.victims import drawn_victims

__all__ = ["RULES", "AccountingReport", "AuditReport", "RuleReport", "run_audit"]

RULES: Final = ("skip", "drop", "clip")
"""The rules that the audit knows."""

Heard = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReport:
    """The audit of one rule."""

    rule: str
    queries: int
    seconds: float
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Tell whether no check failed."""
        return all(check.passed for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingReport:
    """The audit of one accounting, by adversaries that ask with Gaussian and with Laplace noise."""

    accounting: str
    rule: str
    amount: float  # the budget
    queries: int
    seconds: float
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Tell whether no check failed."""
        return all(check.passed for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The audit of a service: passed if every check of every rule and accounting did, and some rule was audited."""

    victims: int
    seed: int
    offered: Offered
    rules: tuple[RuleReport, ...]
    accountings: tuple[AccountingReport, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """Those of all rules and accountings."""
        parts: tuple[RuleReport | AccountingReport, ...] = (*self.rules, *self.accountings)
        return tuple(check for part in parts for check in part.checks)

    @property
    def passed(self) -> bool:
        """Tell whether no check failed, of at least one rule."""
        return bool(self.rules) and all(check.passed for check in self.checks)

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
        service: the service, through whatever transport.
        victims: how many people each dataset has, half of them blank.
        seed: of the audit's own choices; the service's noise is its own.
        name: the beginning of the names of the audit's datasets, which the service must not have yet.
        rules: those that are asked for; what the service does not offer is left out.
        accountings: the kinds that are asked for, likewise; they are audited where Laplace noise is offered.
        heard: called with a line for each step.

    Raises:
        Refused: the service does not accept a request that it should.
        ValueError: there are too few victims.
    """
    offered = service.offered()
    rng = np.random.default_rng(seed)
    return AuditReport(
        victims=victims,
        seed=seed,
        offered=offered,
        rules=tuple(
            _audit_rule(service, rule, victims=victims, name=f"{name}-{rule}", rng=rng, heard=heard)
            for rule in _audited(offered, rules)
        ),
        accountings=tuple(
            _audit_accounting(service, kind, rule, victims=victims, name=f"{name}-{kind}", rng=rng, heard=heard)
            for kind, rule in _accounted(offered, accountings, rules)
        ),
    )


def _accounted(offered: Offered, kinds: Sequence[str], rules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The accountings to audit, by turns under the rules of datasets that are audited, or that of `clip`."""
    of_datasets = [rule for rule in rules if rule in offered.datasets] or ["skip"]
    if "laplace" not in offered.mechanisms:
        return
    for number, kind in enumerate(kind for kind in kinds if kind in offered.accountings):
        yield kind, of_datasets[number % len(of_datasets)]


def _audited(offered: Offered, rules: Sequence[str]) -> Iterator[str]:
    for rule in rules:
        if rule in offered.datasets or rule in offered.queries:
            yield rule


def _audit_rule(
    service: Service, rule: str, *, victims: int, name: str, rng: np.random.Generator, heard: Heard
) -> RuleReport:
    """Canaries and adversaries under one rule. `clip` is a rule of queries, in a dataset of `skip`."""
    began = time.monotonic()
    of_dataset, of_query = (rule, None) if rule != "clip" else ("skip", "clip")
    heard(f"{rule}: canaries")
    checks = _canaries(service, f"{name}-canaries", of_dataset, of_query, victims, rng)
    heard(f"{rule}: adversaries")
    game = Game(
        service, dataset=name, rule=of_dataset, query_rule=of_query, victims=drawn_victims(victims, rng), rng=rng
    )
    game.play()
    checks += checks_of(game, rng)
    seconds = time.monotonic() - began
    return RuleReport(rule=rule, queries=len(game.recorded) + 2, seconds=seconds, checks=tuple(checks))


def _audit_accounting(
    service: Service, kind: str, rule: str, *, victims: int, name: str, rng: np.random.Generator, heard: Heard
) -> AccountingReport:
    """Adversaries that choose between mechanisms, in a dataset of one accounting."""
    began = time.monotonic()
    heard(f"{kind}: adversaries with Laplace noise")
    game = MixedGame(service, dataset=name, kind=kind, rule=rule, people=victims, rng=rng)
    game.play()
    checks = tuple(mixed_checks(game))
    return AccountingReport(
        accounting=kind,
        rule=rule,
        amount=game.amount,
        queries=len(game.told),
        seconds=time.monotonic() - began,
        checks=checks,
    )


def _canaries(
    service: Service, dataset: str, of_dataset: str, of_query: str | None, count: int, rng: np.random.Generator
) -> list[Check]:
    """One query that spends every budget whole, which shows mu, and the same again, which must show nothing."""
    keys, is_in = [f"c{place}" for place in range(count)], rng.random(count) < 0.5
    registration = Registration(dataset=dataset, rule=of_dataset, rho=RHO, people=count, values=count)
    service.register(registration)
    service.upload_people(dataset, {key: place if is_in[place] else None for place, key in enumerate(keys)})
    length = longest_within(RHO * UNITS_PER_RHO, price_of(DYADIC))
    coordinates = tuple({place: length} for place in range(count))
    query = MatrixQuery(table="people", coordinates=coordinates, sigma=DYADIC, rule=of_query)
    found = []
    for name, mu in (("canaries", MU), ("exhausted canaries", 0.0)):
        released = service.ask(dataset, query, analyst=0, key=f"{dataset}-{name}", reuse=False)
        found.append(canary_check(released.values, is_in, length, DYADIC, name=name, mu=mu))
    service.close(dataset)
    return found
