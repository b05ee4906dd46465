"""Seeded bugs of `ledger verify`: each lets a damage pass for a sound ledger."""

from tests.mutants.mutant import Mutant

VERIFYING = "tests/workflows/test_verifying.py"
NAMED = f"{VERIFYING}::test_every_damage_is_named"

MUTANTS = [
    Mutant(
        name="an edited answer passes",
        incident="Whoever owns the database changes what was released, and `verify` says that all is well.",
        file="service/workflows/verify_answers.py",
        find="if answer.body == today or answer.body in bodies:",
        put="if said:",
        killed_by=f"{NAMED}[an answer's values are edited]",
    ),
    Mutant(
        name="a deleted answer passes",
        incident="The same key draws noise and charges again, and nobody learns that it was answered before.",
        file="service/workflows/verify_answers.py",
        find='if entry.kind == "query" and fresh == 0:',
        put='if entry.kind == "burn" and fresh == 0:',
        killed_by=f"{NAMED}[a fresh answer is deleted]",
    ),
    Mutant(
        name="a doubled limit passes",
        incident="Somebody pays 0.881 of a promised 0.5.",
        file="service/workflows/verify_accounts.py",
        find="slots[are_exact & (limits != given)]",
        put="slots[are_exact & (limits < given)]",
        killed_by=f"{NAMED}[everybody's limit is doubled]",
    ),
    Mutant(
        name="a limit put back hides what was spent",
        incident="The limit is raised, spent and lowered again: the promise is broken and the row looks right.",
        file="service/workflows/verify_accounts.py",
        find="over = np.flatnonzero(spent > largest)",
        put="over = np.flatnonzero(spent < 0)",
        killed_by=f"{VERIFYING}::test_what_was_charged_under_a_doubled_limit_is_found_whatever_the_row_says_now",
    ),
    Mutant(
        name="a doubled budget passes",
        incident="The dataset's guarantee is twice what its curator stated.",
        file="service/workflows/verify_registration.py",
        find="if any(genesis(record.name, each) == record.genesis for each in _registrations(record)):",
        put="if any(genesis(record.name, each) for each in _registrations(record)):",
        killed_by=f"{NAMED}[the budget is doubled]",
    ),
    Mutant(
        name="a budget that its epsilon does not give passes",
        incident="An (epsilon, delta) guarantee is charged up to another budget.",
        file="service/workflows/verify_registration.py",
        find="if units != record.budget_units:",
        put="if units > record.budget_units:",
        killed_by=f"{VERIFYING}::test_an_epsilon_gives_its_budget",
    ),
    Mutant(
        name="zeroed worst cases pass",
        incident="An analyst's allowance begins again.",
        file="service/workflows/verify_ledger.py",
        find="            if held != given:",
        put="            if held > given:",
        killed_by=f"{NAMED}[worst cases are zeroed]",
    ),
    Mutant(
        name="a changed act passes",
        incident="The journal says that a limit was never lowered.",
        file="service/workflows/verify_journal.py",
        find="return made.hash == act.hash",
        put="return made.previous_hash == act.previous_hash",
        killed_by=f"{NAMED}[a journal row is changed]",
    ),
    Mutant(
        name="the last acts may be missing",
        incident="An erasure is deleted from the journal.",
        file="service/workflows/verify_journal.py",
        find='"data_version": count,',
        put='"data_version": head.data_version,',
        killed_by=f"{NAMED}[the last journal rows are deleted]",
    ),
    Mutant(
        name="the last entries may be missing",
        incident="The last charges are deleted, and the head is believed.",
        file="service/workflows/verify_ledger.py",
        find="if head.seq != self.last_seq:",
        put="if head.seq < self.last_seq:",
        killed_by=f"{NAMED}[the last entries are deleted]",
    ),
    Mutant(
        name="who is left out may be anybody",
        incident="A limit that somebody brought along is doubled, and the entries that prove it are not asked.",
        file="service/workflows/verify_ledger.py",
        find=">= entry.worst_case_units]",
        put="> 2 * entry.worst_case_units]",
        killed_by=f"{VERIFYING}::test_who_was_left_out_could_not_have_paid",
    ),
    Mutant(
        name="a tombstone may have a key",
        incident="An erased person is back, and the journal that says otherwise is not asked.",
        file="service/workflows/verify_accounts.py",
        find="slots[present & ~given]",
        put="slots[present & given & ~given]",
        killed_by=f"{NAMED}[an erased person has a key again]",
    ),
]
