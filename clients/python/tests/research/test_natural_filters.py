"""Why the composition of what was really asked is no filter: a counter-example in fractions, by enumeration.

A natural filter admits the next mechanism where the exact composition of those of this path and that one is within
(epsilon, delta). e^epsilon is 2 and delta 1/3; three mechanisms with two outcomes each are enough.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Final

import pytest

Law = tuple[Fraction, ...]
Mechanism = tuple[Law, Law]  # of each outcome, with the individual and without it

PAGE: Final = (Path(__file__).parents[4] / "docs" / "natural-filters.md").read_text(encoding="utf-8")
RATIO, DELTA = Fraction(2), Fraction(1, 3)


def answers(truth: Fraction) -> Mechanism:
    """Randomised response that is true with this probability."""
    return (truth, 1 - truth), (1 - truth, truth)


def leak(probability: Fraction) -> Mechanism:
    """The first outcome comes with this probability, and only with the individual."""
    return (probability, 1 - probability), (Fraction(0), Fraction(1))


FIRST, SECOND, LEAK = answers(Fraction(2, 3)), answers(Fraction(3, 4)), leak(Fraction(1, 3))
MENU: Final = (FIRST, SECOND, LEAK)


def deltas(laws: Sequence[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    """The hockey-stick divergences at RATIO, of in from out and of out from in."""
    zero = Fraction(0)
    return sum((max(zero, p - RATIO * q) for p, q in laws), zero), sum(
        (max(zero, q - RATIO * p) for p, q in laws), zero
    )


def composed(mechanisms: Sequence[Mechanism]) -> list[tuple[Fraction, Fraction]]:
    """The joint laws of mechanisms that were fixed beforehand."""
    laws = [(Fraction(1), Fraction(1))]
    for ins, outs in mechanisms:
        laws = [(p * more, q * other) for p, q in laws for more, other in zip(ins, outs, strict=True)]
    return laws


def adaptive(first: Mechanism, then: Callable[[int], Sequence[Mechanism]]) -> list[tuple[Fraction, Fraction]]:
    """The joint laws where the first outcome chooses the mechanisms that follow."""
    return [
        (p * more, q * other)
        for outcome, (p, q) in enumerate(zip(*first, strict=True))
        for more, other in composed(then(outcome))
    ]


def is_admitted(mechanisms: Sequence[Mechanism]) -> bool:
    """By the natural filter: the exact composition of a path, in both directions."""
    return max(deltas(composed(mechanisms))) <= DELTA


def test_each_path_is_within_and_the_whole_is_not() -> None:
    """After a yes the better response, after a no the leak: 4/9 against 1/3."""
    assert is_admitted([FIRST])
    assert is_admitted([FIRST, SECOND])
    assert is_admitted([FIRST, LEAK])
    assert max(deltas(composed([FIRST, SECOND]))) == max(deltas(composed([FIRST, LEAK]))) == DELTA

    total = deltas(adaptive(FIRST, lambda outcome: [SECOND, LEAK][outcome : outcome + 1]))
    assert total == (Fraction(4, 9), Fraction(2, 9))
    assert max(total) > DELTA


def test_without_adaptivity_there_is_nothing_to_win() -> None:
    """One step on both paths, or a coin between two steps, stays within delta."""
    for each in MENU[1:]:
        assert max(deltas(adaptive(FIRST, lambda _, each=each: [each]))) <= DELTA  # type: ignore[misc]
    half = Fraction(1, 2)
    coin = [(p * half, q * half) for each in MENU[1:] for p, q in composed([FIRST, each])]
    assert max(deltas(coin)) <= DELTA


def test_no_shorter_strategy_exceeds() -> None:
    """One step never does; and of all strategies of two steps on this menu only those with both mechanisms do."""
    beyond = []
    for first in MENU:
        if not is_admitted([first]):
            continue
        for thens in product([None, *MENU], repeat=2):
            paths = [[first] if each is None else [first, each] for each in thens]
            if not all(map(is_admitted, paths)):
                continue
            total = max(deltas(adaptive(first, lambda outcome, paths=paths: paths[outcome][1:])))  # type: ignore[misc]
            if total > DELTA:
                beyond.append((first, thens))
    assert (FIRST, (SECOND, LEAK)) in beyond
    assert all(len({each for each in thens if each is not None}) == 2 for _, thens in beyond)


def test_sums_of_charges_admit_neither_path_for_this_promise() -> None:
    """A filter adds one number a step, with a bound that holds of every adaptive sum of them.

    Pure differential privacy here: log ratios add up on each path, so that the total is within the largest path.
    """
    ratios = [max(max(p / q, q / p) for p, q in zip(*each, strict=True)) for each in (FIRST, SECOND)]
    total = adaptive(FIRST, lambda outcome: [SECOND] if outcome == 0 else [])
    assert max(max(p / q, q / p) for p, q in total) == ratios[0] * ratios[1]


@pytest.mark.parametrize("figure", ["4/9", "2/9"])
def test_the_page_has_the_numbers(figure: str) -> None:
    """In its own words, beside those of the mechanisms."""
    assert re.search(rf"{figure}", PAGE)
    for each in ("2/3", "3/4", "1/3"):
        assert each in PAGE
