"""Seeded bugs of erasures and prunings, which rewrite entries of the ledger."""

from tests.mutants.mutant import Mutant

AMENDING = "tests/workflows/maintenance/test_amend.py"
PRUNING = "tests/workflows/maintenance/test_prune.py"
REWRITTEN = "tests/workflows/test_verifying_rewritten.py"
KILLED = "tests/faults/test_rewriting.py"
NAMED = f"{REWRITTEN}::test_every_damage_to_a_rewritten_ledger_is_named"

MUTANTS = [
    Mutant(
        name="an erased individual's norm stays in the ledger",
        incident="The record is gone, and its value can be worked out of what it was charged.",
        file="service/workflows/maintenance/amend.py",
        find='        transaction.amend(waiting)\n        reach("amending")\n',
        put='        reach("amending")\n',
        killed_by=f"{AMENDING}::test_no_entry_holds_the_erased_and_all_accounts_stay",
    ),
    Mutant(
        name="a replica replays an amended entry",
        incident="The erased person comes back there with a budget from which those charges are missing.",
        file="service/workflows/writer/state.py",
        find="if changes.rewritten_seq > self.seq:",
        put="if changes.rewritten_seq < 0:",
        killed_by=f"{AMENDING}::test_a_replica_that_is_behind_takes_totals_from_the_pages",
    ),
    Mutant(
        name="an entry is amended before a checkpoint has it",
        incident="The next start replays it, and the charges of the erased are forgotten.",
        file="service/workflows/maintenance/amend.py",
        find="        if head.checkpoint_seq < stretch.to:\n",
        put="        if head.checkpoint_seq < 0:\n",
        killed_by=f"{AMENDING}::test_a_start_after_the_amendments_loads_every_charge",
    ),
    Mutant(
        name="two processes do one stretch",
        incident="Two replicas start on one erasure; the second says that nothing was amended, and is believed.",
        file="service/workflows/maintenance/amend.py",
        find="        if _next_of(transaction) != stretch:",
        put="        if stretch.to < 0:",
        killed_by=f"{AMENDING}::test_a_range_amended_by_another_process_is_skipped",
    ),
    Mutant(
        name="a rewritten entry is replayed",
        incident="A head that is set back has the erased debited nothing, and nobody notices.",
        file="service/workflows/writer/state.py",
        find="        if entry.is_rewritten:",
        put="        if entry.seq < 0:",
        killed_by=f"{AMENDING}::test_a_rewritten_entry_is_never_replayed",
    ),
    Mutant(
        name="an amendment that nobody journalled passes",
        incident="Whoever holds pepper and database takes people out of entries at will.",
        file="service/workflows/maintenance/verify/ledger.py",
        find="if amendments_digest(rows).hex() != digest:",
        put="if len(digest) == 0:",
        killed_by=f"{NAMED}[an amendment is deleted]",
    ),
    Mutant(
        name="content that no amendment leads to passes",
        incident="An erasure is undone from a backup, and `verify` finds all well.",
        file="service/workflows/maintenance/verify/ledger.py",
        find="            if leads_to != held:\n",
        put="            if held == b'':\n",
        killed_by=f"{REWRITTEN}::test_a_restored_piece_of_an_erased_individual_is_found",
    ),
    Mutant(
        name="what the erased have spent may shrink",
        incident="The account of an erased person is lowered, and the person comes back with a new budget.",
        file="service/workflows/maintenance/verify/ledger.py",
        find="        if self.totals.missing_units != 0:\n",
        put="        if self.totals.missing_units < 0:\n",
        killed_by=f"{NAMED}[an account of an erased individual forgets]",
    ),
    Mutant(
        name="totals of a pruning are believed",
        incident="After a pruning everybody's spent total is whatever somebody wrote.",
        file="service/workflows/maintenance/verify/ledger.py",
        find='            if digest != act.detail["totals"]:\n',
        put='            if digest == act.detail["totals"][:1]:\n',
        killed_by=f"{NAMED}[the totals of a pruning are others]",
    ),
    Mutant(
        name="a damaged ledger is pruned",
        incident="What would have shown the damage is dropped for good.",
        file="service/workflows/maintenance/prune.py",
        find="    if report.findings:\n",
        put="    if len(report.findings) > 1000:\n",
        killed_by=f"{PRUNING}::test_a_damaged_ledger_is_not_pruned",
    ),
    Mutant(
        name="a pruning takes another's place",
        incident="Two commands run side by side; the totals of the slower one are of entries that are gone.",
        file="service/workflows/maintenance/prune.py",
        find="        if transaction.head.pruned_seq != seq_before:",
        put="        if seq_before < 0:",
        killed_by=f"{PRUNING}::test_a_concurrent_pruning_is_refused",
    ),
    Mutant(
        name="a pruned entry is read as if nobody was touched",
        incident="An individual is told that it had nothing to contribute to a query that charged it.",
        file="service/store/postgres/listings.py",
        find="part=None if row[0] <= pruned_seq else part",
        put="part=part",
        killed_by="tests/contracts/test_pruning.py::test_pruned_entries_keep_their_hash_and_hold_no_individual",
    ),
    Mutant(
        name="one nonce seals two contents",
        incident="A restored database amends the same piece again, and both contents can be read without the key.",
        file="service/store/postgres/rewritten_entries.py",
        find="revision=1 + secrets.randbelow(_REVISIONS - 1)",
        put="revision=1",
        killed_by="tests/store/postgres/test_rewritten_entries.py::test_two_amendments_of_one_piece_share_no_nonce",
    ),
    Mutant(
        name="an erasure that a death interrupted is left so",
        incident="The individual's norms stay in the ledger until the next erasure of anybody, if there is one.",
        file="service/workflows/maintenance/amend.py",
        find="        self.ask(record, writer)\n",
        put="        pass\n",
        killed_by=f"{KILLED}::test_amendments_go_on_wherever_a_process_is_killed",
    ),
    Mutant(
        name="a repeated pruning drops what is new alone",
        incident="After a death in the middle, norms that the journal calls pruned stay in the database.",
        file="service/workflows/maintenance/prune.py",
        find="        for after in range(0, seq, STRETCH_ENTRIES):\n",
        put="        for after in range(seq_before, seq, STRETCH_ENTRIES):\n",
        killed_by=f"{KILLED}::test_a_pruning_ends_when_it_is_repeated_wherever_it_was_killed",
    ),
    Mutant(
        name="a silent process keeps the ledger to itself",
        incident="No other process amends, uploads or erases until a machine that stands still is switched off.",
        file="service/store/postgres/rewritten_entries.py",
        find="                self._connection.execute(*self._rewrites(part))\n        self._start_clock()\n",
        put="                self._connection.execute(*self._rewrites(part))\n",
        killed_by="tests/store/postgres/test_rewritten_entries.py"
        "::test_a_process_that_falls_silent_after_writing_loses_its_locks",
    ),
]
