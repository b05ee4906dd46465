"""Seeded bugs of datasets that are divided over shards."""

from tests.mutants.mutant import Mutant

DIVIDED = "service/workflows/shards/divided.py"
SHARD = "service/workflows/shards/shard.py"
PLACE = "service/query/division.py"
LAW = "tests/laws/test_shards.py::test_no_byte_depends_on_the_number_of_shards"
TAKEN_BACK = "tests/laws/test_shards.py::test_what_is_taken_back_has_never_been"
STORY = "tests/workflows/shards/test_divided.py::test_a_divided_dataset_is_the_undivided_one[counts1]"
LOST = "tests/workflows/shards/test_divided.py::test_a_shard_that_dies_in_a_call_costs_nobody_anything"

MUTANTS = [
    Mutant(
        name="a refused batch stays debited at the shards",
        incident="People behind a shard have spent what no answer was given for.",
        file=DIVIDED,
        find='self._each("queries", "take_back", lambda place: (([_for(place, entry) for entry in entries],), {}))',
        put="return",
        killed_by=TAKEN_BACK,
    ),
    Mutant(
        name="a shard's part is added twice",
        incident="Half of the people count double, and the charge is for one.",
        file=DIVIDED,
        find="        values += part.values\n",
        put="        values += part.values * (2 if part is released[-1] else 1)\n",
        killed_by=LAW,
    ),
    Mutant(
        name="a page is on two shards",
        incident="Its people are counted by both, and charged by both.",
        file=PLACE,
        find="% self.count == self.number\n        return here",
        put="% self.count <= self.number\n        return here",
        killed_by="tests/query/test_division.py::test_each_slot_is_on_one_shard_and_comes_back",
    ),
    Mutant(
        name="each shard has noise of its own",
        incident="An answer has the noise of several: less exact than it states, and no test of its law passes.",
        file=SHARD,
        find="noise=np.zeros(turn.plan.dimension, dtype=np.int64)",
        put="noise=np.full(turn.plan.dimension, int(turn.plan.sigma_steps) + 1)",
        killed_by=LAW,
    ),
    Mutant(
        name="parts of folds by a shard's own slots",
        incident="Models are judged by people that they were fitted to, once the dataset is divided.",
        file="service/engine/rows.py",
        find="_folds(self._table.place.of_dataset(self._slots()), formula, column.coding)",
        put="_folds(self._slots(), formula, column.coding)",
        killed_by=STORY,
    ),
    Mutant(
        name="a shard passes over its part where nobody can pay",
        incident="The time of a query tells that everybody of a page has spent all, or that one has not.",
        file=SHARD,
        find="                self.contributions(turn.plan),\n",
        put="                self.contributions(turn.plan)\n"
        "                if memory.accounts.room.max(initial=0) >= (turn.plan.room_units or 0)\n"
        "                else iter(()),\n",
        killed_by="tests/leaks/test_work.py::test_it_is_the_same_at_every_shard_by_what_is_left[False]",
    ),
    Mutant(
        name="a lost shard is taken for an empty one",
        incident="After a crash of one process its people have all their budget again.",
        file="service/workflows/writer/state.py",
        find="                self._fill(restarted, transaction)\n",
        put="",
        killed_by=LOST,
    ),
    Mutant(
        name="the others keep what a lost batch charged",
        incident="People of the shards that did not die pay for an answer that was never given.",
        file="service/workflows/writer/state.py",
        find="            self.invalidate_all()\n            self._version += 1",
        put="            self.data_version = _NEVER\n            self._version += 1",
        killed_by=LOST,
    ),
    Mutant(
        name="a change that was built at a lost shard is committed",
        incident="An upload is durable and answered by an error.",
        file="service/workflows/writer/state.py",
        find="            self._version += 1  # what was built at a lost shard is gone\n",
        put="",
        killed_by="tests/simulation/test_simulation.py::test_shards_that_die_break_no_law[0]",
    ),
    Mutant(
        name="an entry is replayed by every shard",
        incident="A restart charges people of one page what those of another have spent.",
        file=SHARD,
        find="                if page % self.place.count == self.place.number:\n",
        put="                if page >= 0:\n",
        killed_by=LAW,
    ),
    Mutant(
        name="stored pages go to the first shard alone",
        incident="After a restore and its burn the people of all other pages have what they had before the checkpoint.",
        file=DIVIDED,
        find='self._at(page.number % self.count, "queries", "set_page", page)',
        put='self._at(page.number % self.count, "queries", "set_page", page) if page.number == 0 else None',
        killed_by="tests/workflows/shards/test_divided.py::test_a_restored_dataset_is_burned_as_the_undivided_one[True]",
    ),
    Mutant(
        name="a price forgets that shards are one behind the other",
        incident="On a machine with fewer cores than shards every answer is late, by how much depends on the data.",
        file="service/query/cost.py",
        find="max(shards / self.cores, 1.0)",
        put="1.0",
        killed_by="tests/query/test_cost.py::test_more_shards_than_cores_wait_for_each_other",
    ),
    Mutant(
        name="a shard may have all rows of the table",
        incident="Most events are of people on one shard, and answers are later than they were priced.",
        file="service/workflows/uploads.py",
        find="            if more and rows + more > at_shard:\n",
        put="            if more and rows + more > room:\n",
        killed_by="tests/workflows/shards/test_divided.py::test_rows_that_are_spread_too_unevenly_are_refused",
    ),
]
