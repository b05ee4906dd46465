"""Seeded bugs of the rules for individuals that cannot pay: who is out for good, and what a pause does to that."""

from tests.mutants.mutant import Mutant

FILTER = "tests/core/test_renyi_filter.py::test_the_dropped_are_never_active_and_no_other_is_less"
COUNTERS = "tests/engine/test_pages.py::test_each_slot_counts_the_queries_that_name_it"
ACCOUNT = "tests/workflows/test_individual.py::test_under_the_drop_rule_a_pause_is_not_for_good_and_being_left_out_is"
VERIFIED = "tests/workflows/maintenance/verify/test_report.py::test_participation_is_derived_again"

CLIPPED = "tests/core/test_release.py::test_under_the_clip_rule_everyone_gives_what_is_left"
WITHIN = "tests/core/test_charge.py::test_the_norm_within_a_room_is_the_floor_of_the_fraction"

MUTANTS = [
    Mutant(
        name="the filter does not see who was left out before",
        incident="A dataset that was registered with drop answers by skip.",
        file="service/core/renyi_filter.py",
        find="            np.greater(active.view(np.uint8), dropped, out=active)  # 1 and 0\n",
        put="            pass\n",
        killed_by=FILTER,
    ),
    Mutant(
        name="a query is answered by skip in every dataset",
        incident="A dataset that was registered with drop answers by skip.",
        file="service/workflows/shards/shard.py",
        find='self._touches_paused, self._drops = record.rule == "skip", record.rule == "drop"',
        put='self._touches_paused, self._drops = record.rule == "skip", False',
        killed_by=ACCOUNT,
    ),
    Mutant(
        name="only the newest queries leave out for good",
        incident="Whoever was left out comes back after 254 queries.",
        file="service/engine/pages.py",
        find="        charged[:], left_out[:] = 0, ever\n",
        put="        charged[:], left_out[:] = 0, 0\n",
        killed_by=COUNTERS,
    ),
    Mutant(
        name="queries of few leave out nobody for good",
        incident="Whoever a query by an index has left out is in the next one.",
        file="service/engine/pages.py",
        find="            recent[out] = np.maximum(recent[out], 1)\n",
        put="",
        killed_by=COUNTERS,
    ),
    Mutant(
        name="a start forgets who is out for good",
        incident="Whoever was left out comes back with the next deployment.",
        file="service/engine/pages.py",
        find="self._recent[_LEFT_OUT, slots] = 0, ever",
        put="self._recent[_LEFT_OUT, slots] = 0, 0",
        killed_by="tests/engine/test_pages.py::test_a_load_replaces_what_was_counted",
    ),
    Mutant(
        name="a pause is for good under drop",
        incident="People who resume after a holiday take part in nothing any more.",
        file="service/workflows/shards/shard.py",
        find="plan, self.memory, touches_paused=self._touches_paused):",
        put="plan, self.memory, touches_paused=True):",
        killed_by=ACCOUNT,
    ),
    Mutant(
        name="an individual does not hear that it is out for good",
        incident="Its page says that most of its budget is left, and nothing of it is ever used.",
        file="service/workflows/reads/ledger.py",
        find='record.rule == "drop" and account.queries_left_out > 0',
        put="False",
        killed_by=ACCOUNT,
    ),
    Mutant(
        name="verify takes every rule for skip",
        incident="A writer that forgets who was left out is never found.",
        file="service/workflows/maintenance/verify/accounts.py",
        find='        self._drops = record.rule == "drop"\n',
        put="        self._drops = False\n",
        killed_by=VERIFIED,
    ),
    Mutant(
        name="verify takes what is left for what may be used",
        incident="A sound ledger of a dataset with drop is reported as damaged.",
        file="service/workflows/maintenance/verify/ledger.py",
        find="            can_pay &= before[left_out] == 0\n",
        put="            pass\n",
        killed_by=VERIFIED,
    ),
    Mutant(
        name="a shortened vector is charged for what it was",
        incident="Charges exceed what is left, and the service stops with a violation of its own filter.",
        file="service/core/release.py",
        find="        charges[short] = price(take(block.norms_squared, short), sigma_steps)\n",
        put="",
        killed_by=CLIPPED,
    ),
    Mutant(
        name="a vector is shortened to the next unit",
        incident="An individual is charged a unit more than its limit.",
        file="service/core/charge.py",
        find="norm_squared_max=norm_squared_max) > room_units)",
        put="norm_squared_max=norm_squared_max) < 0)",
        killed_by=WITHIN,
    ),
    Mutant(
        name="a wide inverse is an estimate",
        incident="On fine grids the norm that is left is off by hundreds of steps, either way.",
        file="service/core/charge.py",
        find="    norms += np.right_shift(_excess(room, norms.view(np.uint64), price)[0].view(np.int64), 63)\n",
        put="",
        killed_by=WITHIN,
    ),
    Mutant(
        name="the factor is that of the squared norm",
        incident="Whoever is shortened gives far less than it could.",
        file="service/core/shortening.py",
        find="factors = np.sqrt(norms_squared_max.astype(np.float64)) / np.sqrt(high * float(2**HALF_BITS) + low)",
        put="factors = norms_squared_max.astype(np.float64) / (high * float(2**HALF_BITS) + low)",
        killed_by="tests/core/test_shortening.py::test_a_vector_is_scaled_to_its_bound_and_truncated",
    ),
    Mutant(
        name="the paused give what is left",
        incident="A pause does not count in a query under the clip rule.",
        file="service/core/release.py",
        find="        may_take_part = accounts.active(block.touched, uniform(0, places), dropped)\n",
        put="        may_take_part = accounts.room[block.touched.index] >= 0\n",
        killed_by=CLIPPED,
    ),
    Mutant(
        name="a count is shortened on a grid of one",
        incident="Nobody counts as a fraction: clip is skip.",
        file="service/query/scale.py",
        find="if clip is None and not request.is_fine and all(",
        put="if clip is None and all(",
        killed_by="tests/query/test_plan.py::test_under_the_clip_rule_the_grid_is_fine",
    ),
    Mutant(
        name="a receipt does not tell that a vector was shortened",
        incident="An individual sees a charge that it cannot explain.",
        file="service/workflows/model/pieces.py",
        find='        return OwnOutcome("charged" if is_whole else "shortened", units, asked_units)\n',
        put='        return OwnOutcome("charged", units, asked_units)\n',
        killed_by="tests/workflows/model/test_pieces.py::test_the_piece_of_a_slot_gives_its_state_and_charge",
    ),
    Mutant(
        name="verify does not look at who was shortened",
        incident="A writer that shortens at will is never found.",
        file="service/workflows/maintenance/verify/accounts.py",
        find="_of(slots, shortened & can_pay & is_certain,",
        put="_of(slots, shortened & ~can_pay & ~is_certain,",
        killed_by="tests/workflows/maintenance/verify/test_report.py::test_a_vector_that_was_shortened_for_nothing_is_found",
    ),
]
