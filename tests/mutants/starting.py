"""Seeded bugs of a start: a damaged dataset is asked, another pepper is served under, a signal is lost."""

from tests.mutants.mutant import Mutant

CHECK = "tests/workflows/maintenance/test_start_check.py"
CHECKS = "tests/workflows/maintenance/test_start_check.py"
PEPPERS = "tests/store/postgres/test_curator_tables.py"
LAST_LOOK = (
    "tests/e2e/test_process.py::test_a_signal_whose_exception_is_dropped_ends_a_start"
    "[serve-service.run.uvicorn_server:GracefulServer.listen_to_signals-True]"
)
LOOK = "        end_if_asked()  # not before: a signal between the look and the new handlers would be lost\n"

MUTANTS = [
    Mutant(
        name="an entry that is not what was written passes a start",
        incident="A disk flips a bit of a charge, and the service goes on answering from the ledger that it is in.",
        file="service/workflows/maintenance/start_check.py",
        find="return entry.is_itself",
        put="return entry.is_itself or True",
        killed_by=f"{CHECK}::test_every_damage_is_named[values-64]",
    ),
    Mutant(
        name="where one piece meets the next nothing is compared",
        incident="A stretch of entries is made anew, whole in itself, and the start takes it for the ledger.",
        file="service/workflows/maintenance/start_check.py",
        find="            self._expect(entry.hash)\n",
        put="            if entry.seq != seqs[0] or entry.seq == head.seq:\n                self._expect(entry.hash)\n",
        killed_by=f"{CHECK}::test_every_damage_is_named[an entry made anew-1]",
    ),
    Mutant(
        name="a check reads the whole ledger",
        incident="A ledger of years is read at every start, which takes hours from everybody's queries.",
        file="service/workflows/maintenance/start_check.py",
        find="limit = min(PIECE_ENTRIES, self._entries_max - self.entries)",
        put="limit = PIECE_ENTRIES",
        killed_by=f"{CHECK}::test_entries_before_the_window_are_not_checked[2]",
    ),
    Mutant(
        name="a head that was vouched for is answered from",
        incident="The damage is in the log, and the analyst who asked last goes on being answered.",
        file="service/workflows/rollback/guard.py",
        find="        if self._is_damaged:\n            return LedgerDamaged.slug\n",
        put="",
        killed_by=f"{CHECKS}::test_every_operation_on_a_damaged_dataset_is_refused",
    ),
    Mutant(
        name="any pepper will do",
        incident="A pepper is mistyped: whoever was erased comes back with a budget anew.",
        file="service/store/postgres/curator_tables.py",
        find="if proof_of(bytes(salt)) != bytes(proof):",
        put="if len(proof_of(bytes(salt))) != len(proof):",
        killed_by=f"{PEPPERS}::test_a_new_database_keeps_the_first_pepper_and_no_other",
    ),
    Mutant(
        name="nobody looks at the pepper",
        incident="A home's pepper is lost and made anew; every entry then looks damaged, and answers leave meanwhile.",
        file="service/run/adapters.py",
        find="        store.check_pepper(pepper.database_proof)\n",
        put="",
        killed_by="tests/e2e/test_pepper.py::test_another_pepper_is_refused_and_the_first_goes_on",
    ),
    Mutant(
        name="a signal whose exception was dropped is forgotten",
        incident="A rollout ends a process that is starting; it serves on, and is killed a minute later.",
        file="service/run/serve.py",
        find=LOOK,
        put="",
        killed_by=LAST_LOOK,
    ),
    Mutant(
        name="the last look comes before the new handlers",
        incident="One rollout in thousands waits for a process that was told to end between the two.",
        file="service/run/serve.py",
        find=f"        server.listen_to_signals()\n{LOOK}",
        put="        end_if_asked()\n        server.listen_to_signals()\n",
        killed_by=LAST_LOOK,
    ),
    Mutant(
        name="every error of a start is taken for its end",
        incident="A port is taken, and the process exits with status 0 and without a word.",
        file="service/run/listening.py",
        find="        if _START.is_cut:\n            raise SystemExit(0) from None\n        raise\n",
        put="        raise SystemExit(0) from None\n",
        killed_by="tests/run/test_listening.py::test_without_a_signal_nothing_is_hidden",
    ),
]
