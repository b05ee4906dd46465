"""Seeded bugs of the client's private descent on Poisson samples."""

from tests.mutants.mutant import Mutant

_FILE = "clients/python/src/sparing/research.py"
_TESTS = "clients/python/tests/test_research.py::"
_LAWS = "clients/python/tests/test_research_laws.py::"
_ONE_BY_ONE = f"{_TESTS}test_a_step_is_that_of_one_individual_at_a_time"

MUTANTS = [
    Mutant(
        name="samples charged alone",
        incident="Those that a coin left out pay nothing, and what is left of a budget tells the coins.",
        file=_FILE,
        find="        is_active = self.accounts.charge(lengths)\n",
        put="        coins = np.random.default_rng(0).random(len(lengths)) < self.settings.sampling_rate\n"
        "        lengths = np.where(coins, lengths, 0.0)\n"
        "        is_active = self.accounts.charge(lengths)\n",
        killed_by=f"{_LAWS}test_everybody_is_charged_whether_sampled_or_not",
    ),
    Mutant(
        name="a sample that is kept",
        incident="An exception's frames, or a debugger, show the individuals that were sampled.",
        file=_FILE,
        find="        sampled = np.flatnonzero(",
        put="        sampled = self.sampled = np.flatnonzero(",
        killed_by=f"{_LAWS}test_no_sample_is_in_an_exception",
    ),
    Mutant(
        name="noise without the clip",
        incident="With a clip of two the noise is half of that which everybody is charged for.",
        file=_FILE,
        find="source.normal(0, self.settings.sigma, total.shape)",
        put="source.normal(0, self.settings.noise_multiplier, total.shape)",
        killed_by=_ONE_BY_ONE,
    ),
    Mutant(
        name="gradients added at their whole length",
        incident="A gradient of ten clips is charged as one clip and moves the sum by ten.",
        file=_FILE,
        find="        errors *= (lengths / np.maximum(norms, np.finfo(float).tiny))[:, None]\n",
        put="",
        killed_by=_ONE_BY_ONE,
    ),
    Mutant(
        name="the price of the mean norm",
        incident="Everybody pays for the others: one individual's record moves all accounts.",
        file=_FILE,
        find="        charges = self.charge_units[self.grid.cells(lengths, sigma=self.sigma)]\n",
        put="        lengths = np.full_like(lengths, lengths.mean())\n"
        "        charges = self.charge_units[self.grid.cells(lengths, sigma=self.sigma)]\n",
        killed_by=f"{_LAWS}test_without_one_individual_no_other_is_charged_otherwise",
    ),
    Mutant(
        name="scores by a library's product of matrices",
        incident="The last digit of an individual's norm, and with it a charge, depends on how many others there are.",
        file=_FILE,
        find='np.einsum("ij,kj->ik", self.features[rows], parameters)',
        put="self.features[rows] @ parameters.T",
        killed_by=f"{_LAWS}test_a_row_is_worked_out_by_itself",
    ),
    Mutant(
        name="a sampling filter that compares after charging",
        incident="Each individual's last step is beyond its budget, by as much as a whole clip.",
        file=_FILE,
        find="self.spent_units + charges <= self.budget_units",
        put="self.spent_units <= self.budget_units",
        killed_by=f"{_LAWS}test_a_filter_admits_what_fits_and_nothing_else",
    ),
    Mutant(
        name="the exhausted in the sample",
        incident="An individual that cannot pay for a step is out of the accounts, and in the sum.",
        file=_FILE,
        find="self.settings.sampling_rate) & is_active)",
        put="self.settings.sampling_rate))",
        killed_by=_ONE_BY_ONE,
    ),
    Mutant(
        name="q forgotten in the price",
        incident="Steps on samples are charged as full batches, so that a hundredth of them is admitted.",
        file=_FILE,
        find="subsampled_divergences(mus, rate=sampling_rate, ",
        put="subsampled_divergences(mus, rate=1.0, ",
        killed_by=f"{_TESTS}test_gaussian_dp_has_nothing_from_sampling",
    ),
    Mutant(
        name="Gaussian DP made cheaper by sampling",
        incident="A step on samples has the mu of the full one, and is charged q^2 of it: the promise is broken.",
        file=_FILE,
        find="return mus * mus / 2",
        put="return (mus * sampling_rate) ** 2 / 2",
        killed_by=f"{_TESTS}test_gaussian_dp_has_nothing_from_sampling",
    ),
    Mutant(
        name="charges of samples rounded down",
        incident="Ten thousand cheap steps cost an individual less than they are.",
        file=_FILE,
        find="np.ceil(amounts *",
        put="np.floor(amounts *",
        killed_by=f"{_TESTS}test_a_filter_by_one_order_keeps_its_promise",
    ),
    Mutant(
        name="norms of steps that were not paid counted",
        incident="An individual is told an epsilon for sums that it was not in.",
        file=_FILE,
        find="np.where(is_active, lengths, 0.0)[self.shown]",
        put="lengths[self.shown]",
        killed_by=_ONE_BY_ONE,
    ),
]
