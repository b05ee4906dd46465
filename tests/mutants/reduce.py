"""Seeded bugs of reduced sums: charges below what a vector can change, a number without noise, or of another sum."""

from tests.mutants.mutant import Mutant

_CHARGED = "tests/engine/test_reduction.py::test_a_norm_is_charged_rounded_up_and_a_step"
_CHANGES = "tests/engine/test_reduction.py::test_each_is_charged_by_the_reference"
_SQUARES = "tests/engine/test_reduction.py::test_squares_of_the_longest_vectors_are_summed_exactly"
_REFUSED = "tests/query/test_reduction.py::test_other_queries_are_refused_by_their_field"

MUTANTS = [
    Mutant(
        name="the charge of a norm without the step of its rounding",
        incident="Where norms are rounded to either side, a number moves by a step more than was paid for.",
        file="service/engine/reduction.py",
        find="    lengths += ROUNDING_STEPS\n",
        put="",
        killed_by=_CHARGED,
    ),
    Mutant(
        name="the charge of a norm rounded to the nearest step",
        incident="Half of all vectors are charged for less than they can change.",
        file="service/engine/reduction.py",
        find="    lengths += lengths * lengths < norms_squared\n",
        put="",
        killed_by=_CHARGED,
    ),
    Mutant(
        name="the largest entry by its sign",
        incident="A vector of -100 and 1 is charged for 1, and moves the maximum by 100.",
        file="service/engine/reduction.py",
        find="np.maximum.reduceat(np.abs(block.values), firsts)",
        put="np.maximum.reduceat(block.values, firsts)",
        killed_by="tests/engine/test_reduction.py::test_the_largest_entry_is_the_largest_by_size",
    ),
    Mutant(
        name="the largest of rows that are not added up",
        incident="An individual with a hundred events in one cell is charged for one of them.",
        file="service/engine/evaluate.py",
        find='counts_all and plan.reduce != "max"',
        put="counts_all",
        killed_by="tests/engine/test_reduction.py::test_tallied_events_are_charged_as_any_others",
    ),
    Mutant(
        name="the charge of the whole vector's norm for its largest entry",
        incident="The maximum costs what the whole sum costs, and budgets end sooner than needed.",
        file="service/engine/reduction.py",
        find='_peaks(block) if reduce == "max" else _lengths(block)',
        put="_lengths(block)",
        killed_by=_CHANGES,
    ),
    Mutant(
        name="a square of 64 bits without its middle",
        incident="The norm of a long sum is wrong by up to a half of it, for some sums and not for others.",
        file="service/engine/reduction.py",
        find="(between << _HALF_BITS + 1)",
        put="(between << _HALF_BITS)",
        killed_by=_SQUARES,
    ),
    Mutant(
        name="a reduced number without noise",
        incident="The exact maximum is answered; two queries tell whether anybody is in the largest cell.",
        file="service/workflows/shards/shard.py",
        find="self.noise + reduced(total, self.plan.reduce)",
        put="0 * self.noise + reduced(total, self.plan.reduce)",
        killed_by="tests/workflows/test_reductions.py::test_the_maximum_of_many_noisy_counts_is_too_high_and_the_noisy_maximum_is_not",
    ),
    Mutant(
        name="the maximum of each shard",
        incident="A shard reduces its own part: the answer is a sum of maxima, and depends on where people are stored.",
        file="service/workflows/shards/shard.py",
        find="                blocks, pieces = self._told(turn, release, measure)\n",
        put="                blocks, pieces = self._told(turn, release, measure)\n"
        "                values[:] = values if vectors is None else values.max() // values.size\n",
        killed_by="tests/workflows/test_reductions.py::test_any_number_of_shards_gives_the_same_bytes",
    ),
    Mutant(
        name="the worst case of one row for a maximum of many",
        incident="Sigma is chosen for one row, and an individual with more of them is charged above what was stated.",
        file="service/query/scale.py",
        find="(1 if extent.is_once else request.rows)",
        put="(1 if extent.is_once else 1)",
        killed_by="tests/query/test_reduction.py::test_the_largest_number_charges_for_the_largest_entry_at_most",
    ),
    Mutant(
        name="the norm of counts on a grid of whole numbers",
        incident="The step of rounding is a whole person: one count is charged four times what it can change.",
        file="service/query/plan.py",
        find='query.rule == "clip" or query.reduce == "norm"',
        put='query.rule == "clip"',
        killed_by="tests/query/test_reduction.py::test_a_norm_has_a_grid_of_which_the_clip_has_many_steps",
    ),
    Mutant(
        name="reduced vectors that are shortened",
        incident="A vector is shortened by its norm and charged for that, a step below what the rounded norm moves by.",
        file="service/query/reduction.py",
        find='    if query.rule == "clip":\n',
        put='    if query.rule == "drop":\n',
        killed_by=_REFUSED,
    ),
    Mutant(
        name="one maximum of numbers of two units",
        incident="A count and a sum of money are compared, and one of them is always the largest.",
        file="service/query/reduction.py",
        find="    if len(query.select) > 1:\n",
        put="    if len(query.select) > 2:\n",
        killed_by=_REFUSED,
    ),
]
