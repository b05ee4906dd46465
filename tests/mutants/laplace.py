"""Seeded bugs of Laplace noise and its prices: another mechanism, prices that are no bounds, roots and segments."""

from tests.mutants.mutant import Mutant

_KNOTS = "tests/core/test_laplace.py::test_charges_beside_each_knot_are_bounds_and_rise"
_TABLE = "tests/core/test_laplace.py::test_a_charge_is_the_bound_of_the_table_rounded_up"
_NEXT_TO_A_HALF = "tests/core/test_laplace.py::test_a_number_next_to_a_half_is_decided_by_the_words_that_follow"

MUTANTS = [
    Mutant(
        name="Laplace noise as floats have it",
        incident="A number next to a half falls to either side: noise of another law than the one that is charged.",
        file="service/core/laplace.py",
        find="0.5 - scale_steps * ERROR",
        put="0.5 + scale_steps * ERROR",
        killed_by=_NEXT_TO_A_HALF,
    ),
    Mutant(
        name="Laplace noise without its sign",
        incident="Answers are too high on average, and each is a bound on the sum.",
        file="service/core/laplace.py",
        find="chunk *= 1 - 2 * (words >> np.uint64(63)).astype(np.int64)",
        put="chunk *= 1 - 2 * (below >> np.uint64(63)).astype(np.int64)",
        killed_by="tests/core/test_laplace.py::test_words_are_asked_for_by_chunks_and_draws_are_in_their_order",
    ),
    Mutant(
        name="an interval of U without its upper end",
        incident="The words that were not drawn yet no longer count: some draws next to a half come out wrong.",
        file="service/core/laplace.py",
        find="high = low + scale / max(string, 1)",
        put="high = low",
        killed_by=_NEXT_TO_A_HALF,
    ),
    Mutant(
        name="the segment that a float finds",
        incident="A number at a knot is charged by the chord before it, which is below the price there.",
        file="service/core/laplace.py",
        find='    segments += steps >= starts[1:].take(segments, mode="clip")\n',
        put="",
        killed_by=_KNOTS,
    ),
    Mutant(
        name="the charge of a number that is not the norm's root",
        incident="Vectors of several numbers are charged their Euclidean length, below their sum, for Laplace noise.",
        file="service/core/laplace.py",
        find="or (steps * steps != norms_squared).any()",
        put="or (steps * steps > norms_squared + steps).any()",
        killed_by="tests/core/test_laplace.py::test_every_square_has_its_root",
    ),
    Mutant(
        name="the worst case of a root rounded down",
        incident="Coverage is stated by a price below the charge of a number at the clip.",
        file="service/core/laplace.py",
        find="square = (isqrt(norm_squared - 1) + 1) ** 2 if norm_squared > 0 else norm_squared",
        put="square = isqrt(norm_squared) ** 2 if norm_squared > 0 else norm_squared",
        killed_by="tests/core/test_laplace.py::test_a_step_more_is_charged_no_less",
    ),
    Mutant(
        name="chords rounded down",
        incident="Charges of small numbers are a unit below the price: a million of them cost a millionth too little.",
        file="service/accounting/laplace_prices.py",
        find="base - start * per_step + (1 << shift) - 1",
        put="base - start * per_step",
        killed_by=_TABLE,
    ),
    Mutant(
        name="chords before their knots",
        incident="A chord begins a step too early, where it is below the price.",
        file="service/accounting/laplace_prices.py",
        find="starts = [-(-knot * whole // (part * _WORD)) for knot in knots]",
        put="starts = [max(knot * whole // (part * _WORD) - 9, 0) for knot in knots]",
        killed_by=_KNOTS,
    ),
    Mutant(
        name="the divergence of Laplace noise for the amount",
        incident="Under one order a Laplace step costs that many times its price: nobody takes part for long.",
        file="service/accounting/laplace_prices.py",
        find="return _REALS.log(growing + falling) / (a - 1) / a",
        put="return _REALS.log(growing + falling) / (a - 1)",
        killed_by="tests/accounting/test_laplace_prices.py::test_the_values_of_the_theory",
    ),
    Mutant(
        name="half of what a Laplace step costs under GDP",
        incident="mu is taken for half of itself: four times as many answers as the promise allows.",
        file="service/accounting/laplace_prices.py",
        find="return 2 * s * s",
        put="return s * s / 2",
        killed_by="tests/accounting/test_laplace_prices.py::test_the_values_of_the_theory",
    ),
    Mutant(
        name="zCDP beyond the last knot by too small a slope",
        incident="Numbers of many scales are charged half of what they cost.",
        file="service/accounting/laplace_prices.py",
        find="4, quadratic=Fraction(1, 2), slope=Fraction(1))",
        put="4, quadratic=Fraction(1, 2), slope=Fraction(1, 2))",
        killed_by="tests/accounting/test_laplace_prices.py::test_prices_are_never_below_the_definition_and_hardly_above",
    ),
    Mutant(
        name="a replaced record under pure DP for the price of one",
        incident="Blanking a record and writing another is promised at the epsilon of blanking it.",
        file="service/accounting/accountings.py",
        find='        """2 epsilon."""\n        return 2 * units',
        put='        """2 epsilon."""\n        return units',
        killed_by="tests/accounting/test_accountings.py::test_pure_dp_is_epsilon_itself",
    ),
]
