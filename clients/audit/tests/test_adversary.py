"""The computed adversary: it finds the best strategy, sums of charges withstand it, and two tempting rules do not."""

import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from sparing_audit.adversary import Move, strongest_attack
from sparing_audit.curves import concentrated_rho, gaussian_mu, renyi_budget
from sparing_audit.mechanisms import (
    Mechanism,
    concentrated_charge,
    gaussian_charge,
    leak,
    one_sided_test,
    randomised_response,
    renyi_charge,
)
from sparing_audit.rules import composed_within, order_within, sum_within

MENU = [
    *map(randomised_response, (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)),
    *(one_sided_test(*hits) for hits in ((0.05, 0.01), (0.1, 0.04), (0.2, 0.1), (0.4, 0.2))),
]
PROMISES = [(1.0, 0.05), (2.0, 0.02), (1.0, 0.2)]
CHARGES: dict[str, tuple[Callable[[Mechanism], float], Callable[[float, float], float]]] = {
    "zcdp": (concentrated_charge, concentrated_rho),
    "gdp": (gaussian_charge, lambda epsilon, delta: gaussian_mu(epsilon, delta) ** 2 / 2),
}


@pytest.mark.parametrize(
    ("accounting", "epsilon", "delta", "reached"),
    [
        ("zcdp", 1.0, 0.05, 0.0313),
        ("zcdp", 2.0, 0.02, 0.0109),
        ("zcdp", 1.0, 0.2, 0.1288),
        ("gdp", 1.0, 0.05, 0.0311),
        ("gdp", 2.0, 0.02, 0.0073),
        ("gdp", 1.0, 0.2, 0.1379),
    ],
)
def test_sums_of_charges_keep_their_promise(accounting: str, epsilon: float, delta: float, reached: float) -> None:
    """Against every strategy of five steps; were each charge a third too small, one strategy would break it.

    The figures are those of docs/audit.md.
    """
    charge, budget_of = CHARGES[accounting]
    budget = budget_of(epsilon, delta)
    kept, broken = (
        strongest_attack(MENU, sum_within(charge, limit), steps=5, epsilon=epsilon) for limit in (budget, 1.5 * budget)
    )

    assert kept.delta == pytest.approx(reached, abs=5.1e-5)
    assert kept.delta <= delta < broken.delta
    assert delta_of(kept.strategy, epsilon=epsilon, direction=kept.direction) == pytest.approx(kept.delta, rel=1e-12)


@given(
    st.lists(st.tuples(st.floats(0.02, 0.98), st.floats(0.02, 0.98)), min_size=3, max_size=3),
    st.sampled_from(PROMISES),
    st.sampled_from(sorted(CHARGES)),
)
@settings(max_examples=60)
def test_no_menu_breaks_a_sum_of_charges(
    hits: list[tuple[float, float]], promise: tuple[float, float], accounting: str
) -> None:
    """For tests of any probabilities."""
    charge, budget_of = CHARGES[accounting]
    menu = [one_sided_test(*each) for each in hits]
    attack = strongest_attack(menu, sum_within(charge, budget_of(*promise)), steps=4, epsilon=promise[0])
    assert attack.delta <= promise[1]


def test_composing_the_curves_of_what_was_charged_is_no_filter() -> None:
    """Each pair that it admits has a delta(1) of .3216905, and the analyst that picks by the first answer .4431417."""
    shared = (math.exp(1.5) - math.e) / (1 + math.exp(1.5))  # the delta(1) of a response of 1.5
    menu = [randomised_response(0.5), randomised_response(1.5), leak(shared)]
    attack = strongest_attack(menu, composed_within(1, shared), steps=2, epsilon=1)
    hit, miss = menu[0].p_in

    assert shared == pytest.approx(0.3216905, abs=5e-8)
    assert attack.delta == pytest.approx(shared + miss * shared, rel=1e-12)
    assert attack.delta == pytest.approx(0.4431417, abs=5e-8)
    assert attack.strategy == _after(menu[0], hit=menu[1], miss=menu[2])
    assert hit > miss


# The tests of issue 27 as they are printed, with seven digits; then with the two small probabilities to all digits.
FIRST, HIT, MISS = (0.0451782, 0.02), (0.1669024, 0.0008175), (0.0024773, 3.9687e-6)
BUDGETS = {order: renyi_budget(6, 1e-3, order) for order in (3.0, 8.0)}


def test_one_order_of_several_is_no_filter() -> None:
    """Orders 3 and 8 for (6, 1e-3): after a hit order 8 admits a test, after a miss order 3 another."""
    menu = [one_sided_test(*hits) for hits in (FIRST, HIT, MISS)]
    attack = strongest_attack(menu, order_within(BUDGETS, needed=any), steps=2, epsilon=6)

    assert attack.strategy == _after(menu[0], hit=menu[1], miss=menu[2])
    assert attack.delta == pytest.approx(1.7406e-3, abs=5e-8)
    assert strongest_attack(menu, order_within(BUDGETS, needed=all), steps=2, epsilon=6).delta <= 1e-3


def test_budgets_spent_whole_break_the_promise_by_a_little_more() -> None:
    """1.7409e-3, where the two later tests are as sharp as their orders allow: .00081747 and 3.96860e-6."""
    first = one_sided_test(*FIRST)
    sharp = [
        _sharpest(hits[0], order, BUDGETS[order] - renyi_charge(first, order))
        for hits, order in ((HIT, 8.0), (MISS, 3.0))
    ]
    menu = [first, *(one_sided_test(*hits) for hits in sharp)]
    attack = strongest_attack(menu, order_within(BUDGETS, needed=any), steps=2, epsilon=6)

    assert [hit_out for _, hit_out in sharp] == pytest.approx([8.1747e-4, 3.96860e-6], rel=1e-5)
    assert attack.delta == pytest.approx(1.7409e-3, abs=5e-8)


def test_all_orders_together_are_a_filter() -> None:
    """On a menu of which it admits some; with budgets for another promise the same menu breaks this one."""
    menu = [*map(randomised_response, (0.5, 1.0, 2.0, 4.0)), *(one_sided_test(*hits) for hits in (FIRST, (0.02, 1e-3)))]
    wider = {order: renyi_budget(6, 5e-2, order) for order in BUDGETS}
    kept, broken = (
        strongest_attack(menu, order_within(budgets, needed=all), steps=4, epsilon=6) for budgets in (BUDGETS, wider)
    )

    assert 1e-4 < kept.delta <= 1e-3 < broken.delta


@given(st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)), min_size=2, max_size=2), st.floats(1, 4))
@settings(max_examples=25)
def test_a_sum_of_concentrated_charges_bounds_every_order(hits: list[tuple[float, float]], times: float) -> None:
    """Remark 4.4: what the one sum admits, adaptively, has a divergence of at most the order times rho at every order.

    Every strategy of three steps is listed. Each pick is of two laws, so that it may be of other neighbouring datasets
    than the last one.
    """
    menu = [one_sided_test(*each) for each in hits]
    rho = times * min(map(concentrated_charge, menu))
    for strategy in _strategies(menu, sum_within(concentrated_charge, rho), 3, ()):
        for order in (1.5, 2.0, 8.0, 32.0):
            assert divergence_of(strategy, order=order) <= order * rho * (1 + 1e-9)


def test_the_divergence_of_an_order_is_spent_nearly_whole() -> None:
    """By randomised response, whose rho is that of orders near 1: four steps of four charges, and not of five."""
    response = randomised_response(0.2)
    charge, four = concentrated_charge(response), _chain([response] * 4)
    assert 3.9 * charge * 1.01 < divergence_of(four, order=1.01) <= 4 * charge * 1.01
    assert sum_within(concentrated_charge, 4 * charge)([response] * 4)
    assert not sum_within(concentrated_charge, 4 * charge)([response] * 5)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_half_the_sum_of_squares_is_a_filter_of_pure_steps(delta: float) -> None:
    """Theorem 4.8: up to B*, here of (1, delta), no strategy of ten steps breaks the promise; up to 8 B* one does."""
    lost = math.log(1 / delta)
    best = (math.sqrt(lost + 1) - math.sqrt(lost)) ** 2
    menu = list(map(randomised_response, (0.12, 0.2, 0.5)))
    kept, broken = (
        strongest_attack(menu, sum_within(_half_square, limit), steps=10, epsilon=1) for limit in (best, 8 * best)
    )
    assert 0 < kept.delta <= delta < broken.delta


@pytest.mark.parametrize("mechanism", MENU, ids=lambda mechanism: mechanism.name)
def test_half_the_square_is_no_less_than_the_concentrated_charge(mechanism: Mechanism) -> None:
    """Each epsilon-DP step is (epsilon^2 / 2)-zCDP, by which Theorem 4.8 follows; charges are rounded up a little."""
    assert concentrated_charge(mechanism) <= _half_square(mechanism) * 1.002


@given(
    st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)), min_size=2, max_size=2),
    st.floats(0, 1),
    st.integers(1, 3),
)
@settings(max_examples=50)
def test_no_strategy_of_the_whole_tree_is_better(hits: list[tuple[float, float]], epsilon: float, most: int) -> None:
    """Every strategy of two steps, listed one by one, under a bound on the number of mechanisms of a kind."""
    menu = [one_sided_test(*each) for each in hits]

    def rule(charged: Sequence[Mechanism]) -> bool:
        return charged.count(menu[0]) <= 1 and len(charged) <= most

    attack = strongest_attack(menu, rule, steps=2, epsilon=epsilon)
    listed = max(
        delta_of(strategy, epsilon=epsilon, direction=direction)
        for strategy in _strategies(menu, rule, 2, ())
        for direction in ("in", "out")
    )
    assert attack.delta == pytest.approx(listed, rel=1e-12, abs=1e-15)


def test_both_directions_are_searched() -> None:
    """A leak of an absence is found, and only in its direction."""
    absent = Mechanism(name="absence", p_in=(0.0, 1.0), p_out=(0.2, 0.8))
    attack = strongest_attack([absent], lambda charged: len(charged) <= 2, steps=3, epsilon=1)

    assert attack.direction == "out"
    assert attack.delta == pytest.approx(1 - 0.8**2)


def test_a_strategy_reads_as_a_tree() -> None:
    """Each line is a mechanism, or the end, after an outcome."""
    move = _after(randomised_response(0.5), hit=leak(0.1), miss=None)
    assert str(move).splitlines() == [
        "randomised response of 0.5",
        "  after 0: leak of 0.1",
        "    after 0: stop",
        "    after 1: stop",
        "  after 1: stop",
    ]


def test_the_readme_shows_a_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    """Its block runs, and prints a delta within the promise before the tree."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own page
    delta, _, tree = capsys.readouterr().out.partition(" ")

    assert 0.01 < float(delta) <= 0.05
    assert tree.startswith(("randomised response of 0.3", "test of 0.1 against 0.04"))


def test_a_rule_that_admits_nothing_leaves_the_analyst_nothing() -> None:
    """It stops at once."""
    attack = strongest_attack(MENU, lambda _: False, steps=3, epsilon=0)
    assert (attack.delta, attack.strategy) == (0, None)


@pytest.mark.parametrize(("menu", "steps", "epsilon"), [([], 1, 1.0), (MENU, -1, 1.0), (MENU, 1, -1.0)])
def test_a_game_that_is_none_is_refused(menu: list[Mechanism], steps: int, epsilon: float) -> None:
    """It needs a menu, and numbers that are not negative."""
    with pytest.raises(ValueError, match="needs a menu"):
        strongest_attack(menu, lambda _: True, steps=steps, epsilon=epsilon)


def delta_of(strategy: Move | None, *, epsilon: float, direction: str) -> float:
    """The delta(epsilon) of one strategy, by summing over all its paths."""

    def summed(move: Move | None, p: float, q: float) -> float:
        if move is None:
            return max(0.0, p - math.exp(epsilon) * q)
        laws = zip(*move.asks.laws(direction), move.then, strict=True)
        return math.fsum(summed(after, p * more_p, q * more_q) for more_p, more_q, after in laws)

    return summed(strategy, 1.0, 1.0)


def divergence_of(strategy: Move | None, *, order: float) -> float:
    """The Rényi divergence of all that one strategy sees, by summing over its paths, in the larger direction."""

    def moment(move: Move | None, direction: str) -> float:
        if move is None:
            return 1.0
        laws = zip(*move.asks.laws(direction), move.then, strict=True)
        return math.fsum(p**order * q ** (1 - order) * moment(after, direction) for p, q, after in laws)

    return math.log(max(moment(strategy, direction) for direction in ("in", "out"))) / (order - 1)


def _half_square(mechanism: Mechanism) -> float:
    """Half the square of the epsilon of pure DP."""
    ratios = (math.log(p / q) for p, q in zip(mechanism.p_in, mechanism.p_out, strict=True))
    return max(map(abs, ratios)) ** 2 / 2


def _chain(mechanisms: Sequence[Mechanism]) -> Move | None:
    """Mechanisms that are asked one after another, whatever the outcomes."""
    if not mechanisms:
        return None
    after = _chain(mechanisms[1:])
    return Move(asks=mechanisms[0], then=(after, after))


def _after(first: Mechanism, *, hit: Mechanism, miss: Mechanism | None) -> Move:
    """Two steps, and the end after each outcome of the second."""
    last = (None if each is None else Move(asks=each, then=(None, None)) for each in (hit, miss))
    return Move(asks=first, then=tuple(last))


def _sharpest(hit_in: float, order: float, room: float) -> tuple[float, float]:
    """The test whose divergence of the order is the room that is left, rounded to the side that fits."""

    def over(log_out: float) -> float:
        return renyi_charge(one_sided_test(hit_in, math.exp(log_out)), order) - room

    return hit_in, math.exp(brentq(over, math.log(1e-12), math.log(hit_in), xtol=1e-14)) * (1 + 1e-13)


def _strategies(
    menu: Sequence[Mechanism], rule: Callable[[Sequence[Mechanism]], bool], steps: int, charged: tuple[Mechanism, ...]
) -> list[Move | None]:
    """Every tree of moves that the rule admits."""
    found: list[Move | None] = [None]
    for mechanism in menu if steps > 0 else ():
        if rule([*charged, mechanism]):
            below = _strategies(menu, rule, steps - 1, (*charged, mechanism))
            found += [Move(asks=mechanism, then=each) for each in itertools.product(below, repeat=2)]
    return found
