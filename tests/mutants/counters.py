"""Seeded bugs of the counters of queries."""

from tests.mutants.mutant import Mutant

STATE = "tests/workflows/writer/test_state.py::test_counters_are_those_of_the_ledger"

MUTANTS = [
    Mutant(
        name="a page of people left out is not written",
        incident="After a restart an individual is told of fewer queries that left it out than there were.",
        file="service/workflows/shards/shard.py",
        find="            pages.append(_pages(touched))\n",
        put="            pages.append(_pages(Touched(touched.slots(active))))\n",
        killed_by=STATE,
    ),
    Mutant(
        name="who was left out is counted twice",
        incident="A page was stored after the checkpoint: the entries since leave people out once more.",
        file="service/workflows/shards/shard.py",
        find="return Touched(index, block.touched.among(is_missing)), np.logical_and(block.active, is_missing)",
        put="return block.touched, np.logical_and(block.active, is_missing)",
        killed_by=STATE,
    ),
    Mutant(
        name="a burn is counted as a query",
        incident="An individual is told of a query that nobody asked.",
        file="service/workflows/shards/shard.py",
        find='        if entry.kind == "query":\n',
        put="        if entry.seq:\n",
        killed_by=STATE,
    ),
    Mutant(
        name="a refused proposal stays counted",
        incident="Each batch that another replica has overtaken counts its queries twice.",
        file="service/workflows/shards/shard.py",
        find="                self.memory.counters.take_back(block.touched, block.active)\n",
        put="",
        killed_by="tests/workflows/writer/test_optimistic.py::test_a_refused_optimistic_commit_leaves_memory_as_it_was",
    ),
    Mutant(
        name="a refused proposal stays debited",
        incident="Each batch that another replica has overtaken costs people what no answer was given for.",
        file="service/workflows/shards/shard.py",
        find="                self.memory.accounts.take_back(block.touched, block.active, charges)\n",
        put="",
        killed_by="tests/laws/test_forms_of_entries.py::test_what_is_taken_back_has_never_been",
    ),
    Mutant(
        name="a page of a release is not written",
        incident="A checkpoint leaves out what its last queries charged: after a restart people have it again.",
        file="service/workflows/shards/shard.py",
        find="                self.page_seqs[_pages(block.touched)] = turn.seq\n",
        put="",
        killed_by="tests/laws/test_forms_of_entries.py::test_a_replay_gives_the_memory_of_the_release",
    ),
    Mutant(
        name="a burn is counted in SQL",
        incident="An account that is read from the database says something else than one from memory.",
        file="service/store/postgres/snapshot.py",
        find='tally[part.outcome] += kind == "query"',
        put="tally[part.outcome] += 1",
        killed_by="tests/contracts/test_listings.py::test_an_account_is_its_page_plus_later_entries",
    ),
    Mutant(
        name="a damaged counter passes",
        incident="Somebody who owns the database hides that an individual was left out, and `verify` finds all well.",
        file="service/workflows/maintenance/verify/totals.py",
        find="return [totals.spent, totals.charged, totals.left_out, ticks]",
        put="return [totals.spent, totals.charged, totals.charged, ticks]",
        killed_by="tests/workflows/maintenance/verify/test_report.py::test_every_damage_is_named",
    ),
    Mutant(
        name="an account reads pieces as long as they are",
        incident="How long an individual's own account takes tells how many others were touched.",
        file="service/store/postgres/listings.py",
        find='seq, kind, mechanism, sigma, grid_log2, salt, {_OWN_NUMBER}, {_PADDED}"',
        put="seq, kind, mechanism, sigma, grid_log2, salt, {_OWN_NUMBER},"
        ' length(own), own || substring(%s::bytea FROM 1 FOR 0)"',
        killed_by="tests/store/postgres/test_listings.py::test_an_account_reads_as_much_of_each_entry",
    ),
]
