"""Seeded bugs that only show where something real fails: a connection, a process, a disk."""

from tests.mutants.mutant import Mutant

CUTTING = "tests/faults/test_cutting.py::test_an_unseen_commit_is_resolved_by_reading"
PROPOSAL = "tests/contracts/test_conditional_append.py"

MUTANTS = [
    Mutant(
        name="an unseen commit counts as undone",
        incident="An answer that is in the ledger is refused; whoever asks again under a fresh key pays twice.",
        file="service/workflows/writer/committer.py",
        find="return self._read_outcomes(requests)",
        put="return [Unavailable() for _ in requests]",
        killed_by=f"{CUTTING}[REPLIED]",
    ),
    Mutant(
        name="an unseen commit is read without the lock",
        incident="A commit that is still on its way is not seen, and counts as undone.",
        file="service/workflows/writer/committer.py",
        find="with self._guard.transaction(lock=True, asked=asked) as transaction:\n"
        "                    known = transaction.known.answers",
        put="with self._guard.transaction(lock=False, asked=asked) as transaction:\n"
        "                    known = transaction.known.answers",
        killed_by="tests/workflows/writer/test_queue.py::test_an_unclear_commit_is_read_never_redone[late]",
    ),
    Mutant(
        name="released before it is witnessed",
        incident="A backup restored after the answer has left is not noticed, and the budget is new.",
        file="service/workflows/writer/committer.py",
        find='        self._guard.confirm_recorded(head)\n        reach("witnessed")\n',
        put='        reach("witnessed")\n',
        killed_by="tests/faults/test_killing.py::test_one_replica_dies_and_nothing_is_lost_or_doubled[done]",
    ),
    Mutant(
        name="a witness that is not synced",
        incident="A power cut takes what was witnessed along with what it would have told of.",
        file="service/store/witness/file.py",
        find="        os.fdatasync(file.descriptor)\n        if place.slot == 0:",
        put="        if place.slot == 0:",
        killed_by="tests/store/witness/test_file.py::test_what_could_not_be_synced_is_written_anew",
    ),
    Mutant(
        name="a lost connection is an incident",
        incident="What the database does shows in the status: 500 for this fault, 503 for that.",
        file="service/store/postgres/sessions.py",
        find="_FAULTS: Final = (psycopg.Error, PoolTimeout, PoolClosed)",
        put="_FAULTS: Final = (psycopg.ProgrammingError, PoolTimeout, PoolClosed)",
        killed_by="tests/faults/test_sweep.py::test_a_replica_that_has_loaded_nothing_is_no_different[REPLIED]",
    ),
    Mutant(
        name="a broken pipeline is believed",
        incident="Found by the sweep: after one refused statement a session fails for ever on another.",
        file="service/store/postgres/sessions.py",
        find="        is_whole = self.pgconn.transaction_status == TransactionStatus.INTRANS\n",
        put="        is_whole = True\n",
        killed_by="tests/store/postgres/test_store.py::test_a_broken_pipeline_leaves_a_session_that_works",
    ),
    Mutant(
        name="one connection waits for another",
        incident="As many writers as there are connections wait for one another, and nobody is answered.",
        file="service/store/postgres/store.py",
        find="        with self._pool.one(for_writing=lock) as session:\n            yield",
        put="        with self._pool.one(for_writing=lock) as session, self._pool.one(for_writing=lock):\n"
        "            yield",
        killed_by="tests/store/postgres/test_store.py::test_one_connection_is_enough",
    ),
    Mutant(
        name="an unclear proposal is read past",
        incident="Postgres begins with a statement after others have looked: a refused question is charged.",
        file="service/store/postgres/store.py",
        find="            self._pool.await_end(self._backend)\n",
        put="            pass\n",
        killed_by=f"{CUTTING}[SENT]",
    ),
    Mutant(
        name="a proposal on another history",
        incident="Entries are chained to a hash that the restored database does not have.",
        file="service/store/postgres/append.py",
        find=" AND seq = $5 AND hash = $6 AND",
        put=" AND seq = $5 AND hash <> $6 AND",
        killed_by=f"{PROPOSAL}::test_a_head_of_the_same_sequence_and_another_hash_is_refused",
    ),
    Mutant(
        name="a proposal charges for what could be reused",
        incident="The same question is paid for twice in one epoch, because another replica has answered it.",
        file="service/store/postgres/append.py",
        find="AND l.epoch = h.epoch AND l.kind = 'query')",
        put="AND l.epoch = h.epoch AND l.kind = 'query' AND FALSE)",
        killed_by=f"{PROPOSAL}::test_a_query_that_could_be_reused_is_not_charged_again",
    ),
    Mutant(
        name="debits of a refused proposal stay",
        incident="Memory believes that people have spent what nobody was told: they run out too early.",
        file="service/workflows/writer/state.py",
        find="            self.shards.take_back(self._tentative)\n",
        put="",
        killed_by="tests/workflows/writer/test_optimistic.py::test_a_refused_optimistic_commit_leaves_memory_as_it_was",
    ),
    Mutant(
        name="debits of a rejected batch stay",
        incident="Each try of a rejected query takes from the accounts in memory what the ledger never charged.",
        file="service/workflows/writer/state.py",
        find="        except (CommitRejected, HeadMoved):\n",
        put="        except HeadMoved:\n",
        killed_by="tests/workflows/writer/test_committer.py::test_a_rejected_query_invalidates_nothing[memory]",
    ),
    Mutant(
        name="a rejection taken for an unclear commit",
        incident="One query that Postgres rejects refuses everything that shares its batch, each time it is tried.",
        file="service/store/postgres/sessions.py",
        find="fault.sqlstate.startswith(_REPEATING)",
        put="fault.sqlstate.startswith(())",
        killed_by="tests/workflows/writer/test_committer.py::test_neighbours_of_a_rejected_query_are_answered[postgres]",
    ),
    Mutant(
        name="pages of a refused proposal are ahead",
        incident="What another replica charges next is skipped as if the page had it already: budgets are un-spent.",
        file="service/workflows/shards/shard.py",
        find="        self.page_seqs[:] = self._seqs_before\n",
        put="",
        killed_by="tests/workflows/replication/test_act_changes.py::test_replicas_agree_on_what_was_spent",
    ),
]
