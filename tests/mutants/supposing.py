"""Seeded bugs of `ledger what-if`: each gives numbers that the other rule or budget would not have given."""

from tests.mutants.mutant import Mutant

REPLAY = "service/workflows/maintenance/supposed_replay.py"
REFERENCE = "tests/workflows/maintenance/test_supposed_replay.py::test_every_rule_and_budget_is_the_reference"
TOTALS = "tests/workflows/maintenance/test_what_if.py"

MUTANTS = [
    Mutant(
        name="a supposed drop forgets who was left out",
        incident="Drop looks as good as skip, and an operator registers the next dataset with it.",
        file=REPLAY,
        find="            self._was_left_out[touched.slots(touched.among(~active))] = 1\n",
        put="            pass\n",
        killed_by=REFERENCE,
    ),
    Mutant(
        name="a supposed clip counts the paused",
        incident="Clip is credited with contributions that their individuals have refused.",
        file=REPLAY,
        find="(room > 0) & ~resting & ~active",
        put="(room > 0) & ~active",
        killed_by=REFERENCE,
    ),
    Mutant(
        name="a chosen limit follows the supposed budget",
        incident="A larger budget seems to keep everybody, although many have chosen less.",
        file=REPLAY,
        find="np.where(units >= own, supposed, np.minimum(units, supposed))",
        put="supposed",
        killed_by=REFERENCE,
    ),
    Mutant(
        name="a supposed burn goes beyond what is left",
        incident="The command ends in a traceback on every restored ledger.",
        file=REPLAY,
        find="np.minimum(units, left)",
        put="units",
        killed_by=f"{TOTALS}::test_a_burn_charges_what_it_did_and_at_most_what_is_left",
    ),
    Mutant(
        name="an erased individual comes back with a whole budget",
        incident="The replay of a ledger under its own rule differs from the ledger.",
        file=REPLAY,
        find="                self._learn(self._unrecorded, entry, block, whole, charges)\n",
        put="                pass\n",
        killed_by=f"{TOTALS}::test_an_erased_individual_is_unknown_in_earlier_queries",
    ),
    Mutant(
        name="a shortened individual that came back has the budget's limit",
        incident="The replay of a ledger under its own rule charges a whole vector where it was shortened.",
        file=REPLAY,
        find="active & (charges < prices)\n",
        put="active & (charges > prices)\n",
        killed_by="tests/laws/test_what_if.py::test_one_that_was_shortened_and_came_back_pays_what_it_did",
    ),
    Mutant(
        name="a pause counts against skip",
        incident="Drop seems to keep a larger share than skip, because it does not touch the paused.",
        file="service/workflows/maintenance/what_if.py",
        find="outcome.counted + outcome.left_out - outcome.paused",
        put="outcome.counted + outcome.left_out",
        killed_by=f"{TOTALS}::test_a_pause_is_no_contribution_under_any_rule",
    ),
    Mutant(
        name="what a burn took from limits is forgotten",
        incident="Who joined after a restore, was erased and came back is taken for having spent more than its limit.",
        file=REPLAY,
        find="        self._own_limits[slots] = np.minimum(units, own)\n",
        put="        self._own_limits[slots] = units\n",
        killed_by="tests/laws/test_what_if.py::test_one_that_joined_after_a_burn_had_no_more_than_the_burn_allowed",
    ),
]
