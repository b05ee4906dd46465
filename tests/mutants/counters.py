"""Seeded bugs of the counters of queries."""

from tests.mutants.mutant import Mutant

STATE = "tests/workflows/writer/test_state.py::test_counters_are_those_of_the_ledger"

MUTANTS = [
    Mutant(
        name="a page of people left out is not written",
        incident="After a restart an individual is told of fewer queries that left it out than there were.",
        file="service/workflows/writer/state.py",
        find="        if left_out.size > 0:\n",
        put="        if left_out.size < 0:\n",
        killed_by=STATE,
    ),
    Mutant(
        name="who was left out is counted twice",
        incident="A page was stored after the checkpoint: the entries since leave people out once more.",
        file="service/workflows/writer/state.py",
        find="            left_out = left_out[misses[left_out >> PAGE_BITS]]\n",
        put="",
        killed_by=STATE,
    ),
    Mutant(
        name="a burn is counted as a query",
        incident="An individual is told of a query that nobody asked.",
        file="service/workflows/writer/state.py",
        find='        if entry.kind == "query":\n',
        put="        if entry.seq:\n",
        killed_by=STATE,
    ),
    Mutant(
        name="a refused proposal stays counted",
        incident="Each batch that another replica has overtaken counts its queries twice.",
        file="service/workflows/writer/state.py",
        find="                self._tentative.counted.append((charged, left_out))\n",
        put="                pass\n",
        killed_by="tests/workflows/writer/test_optimistic.py::test_a_refused_optimistic_commit_leaves_memory_as_it_was",
    ),
    Mutant(
        name="a burn is counted in SQL",
        incident="An account that is read from the database says something else than one from memory.",
        file="service/store/postgres/ledger_listings.py",
        find="(WHERE outcome = 'charged' AND kind = 'query')",
        put="(WHERE outcome = 'charged')",
        killed_by="tests/contracts/test_listings.py::test_an_account_is_its_page_plus_later_entries",
    ),
    Mutant(
        name="a damaged counter passes",
        incident="Somebody who owns the database hides that an individual was left out, and `verify` finds all well.",
        file="service/workflows/maintenance/verify/totals.py",
        find="return [totals.spent, totals.charged, totals.left_out]",
        put="return [totals.spent, totals.charged, totals.charged]",
        killed_by="tests/workflows/maintenance/verify/test_report.py::test_every_damage_is_named",
    ),
    Mutant(
        name="an account reads pieces as long as they are",
        incident="How long an individual's own account takes tells how many others were touched.",
        file="service/store/postgres/ledger_listings.py",
        find='{_OWN_NUMBER}, {_PADDED}"',
        put='{_OWN_NUMBER}, length(own), own || substring(%s::bytea FROM 1 FOR 0)"',
        killed_by="tests/store/postgres/test_ledger_listings.py::test_an_account_reads_as_much_of_each_entry",
    ),
]
