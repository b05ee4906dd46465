"""Seeded bugs of the accountants that are no filters: roundings to the wrong side, lost sums."""

from tests.mutants.mutant import Mutant

_CELLS = "tests/accounting/test_noise_grid.py::test_a_cell_is_the_first_that_is_not_below"
_ONE_STEP = "tests/accounting/test_loss_steps.py::test_never_below_the_truth_and_hardly_above"
_GAUSSIAN = "tests/accounting/test_privacy_loss.py::test_ten_thousand_steps"

MUTANTS = [
    Mutant(
        name="norms rounded down to the grid",
        incident="Each step is told to cost less than it did: an individual reads an epsilon below its own.",
        file="service/accounting/noise_grid.py",
        find="return below + (norms > 0)",
        put="return np.maximum(below, norms > 0)",
        killed_by=_CELLS,
    ),
    Mutant(
        name="a cell at the mu that a quotient may be rounded down to",
        incident="Norms just above a mu of the grid are accounted for at that mu.",
        file="service/accounting/noise_grid.py",
        find="np.nextafter(np.array((0.0, *self.mus)), np.inf)",
        put="np.array((0.0, *self.mus))",
        killed_by="tests/accounting/test_noise_grid.py::test_a_quotient_that_is_rounded_down_is_still_paid",
    ),
    Mutant(
        name="losses rounded down",
        incident="The mass between two losses goes to the lower one: epsilon is below the truth.",
        file="service/accounting/loss_steps.py",
        find="    lower = np.minimum(np.maximum(lower, 0.0), p)\n",
        put="    lower = p\n",
        killed_by=_ONE_STEP,
    ),
    Mutant(
        name="losses rounded to the upper side alone",
        incident="A thousand steps move epsilon by five hundred spacings: true, and useless.",
        file="service/accounting/loss_steps.py",
        find="    lower = np.minimum(np.maximum(lower, 0.0), p)\n",
        put="    lower = np.zeros(len(p))\n",
        killed_by=_GAUSSIAN,
    ),
    Mutant(
        name="adding an individual for removing it",
        incident="Both directions are the cheaper one: the epsilon of a subsampled step is far below the truth.",
        file="service/accounting/loss_steps.py",
        find="    removing = _split(mixed, out, losses",
        put="    removing = _split(out, mixed, losses",
        killed_by=_ONE_STEP,
    ),
    Mutant(
        name="losses above the grid that are left out",
        incident="What is beyond the last loss counts for nothing, instead of being infinite.",
        file="service/accounting/loss_steps.py",
        find="masses=masses, infinite=above)",
        put="masses=masses, infinite=0.0)",
        killed_by="tests/accounting/test_privacy_loss.py::test_infinite_losses_count_once_for_each_step",
    ),
    Mutant(
        name="sums above the window that are left out",
        incident="The FFT takes them for small ones, and nothing is added for them.",
        file="service/accounting/privacy_loss.py",
        find="beyond=math.exp(float(exponents.min())) + composition.infinite",
        put="beyond=composition.infinite",
        killed_by="tests/accounting/test_privacy_loss.py::test_what_is_added_is_stated",
    ),
    Mutant(
        name="no bound on rounding",
        incident="At small deltas the errors of the FFT decide, and may be below the truth.",
        file="service/accounting/privacy_loss.py",
        find="return self.beyond + relative * math.sqrt(squares) + summed",
        put="return self.beyond",
        killed_by="tests/accounting/test_privacy_loss.py::test_what_is_added_is_stated",
    ),
    Mutant(
        name="the binomial sum from its third term on",
        incident="The largest part of a subsampled step's divergence is left out.",
        file="service/accounting/subsampled_rdp.py",
        find="logs + grown + np.log(-np.expm1(-grown))",
        put="(logs + grown + np.log(-np.expm1(-grown)))[:, -max(order - 2, 1) :]",
        killed_by="tests/accounting/test_subsampled_rdp.py::test_values_that_were_computed_elsewhere",
    ),
    Mutant(
        name="the best conversion as the worst",
        incident="The epsilon of an individual is that of the least useful order.",
        file="service/accounting/subsampled_rdp.py",
        find="(divergences + lost).min(axis=1)",
        put="(divergences + lost).max(axis=1)",
        killed_by="tests/accounting/test_subsampled_rdp.py::test_epsilons_by_the_optimal_conversion",
    ),
]
