"""Seeded bugs of the witness and of what a restored database has to pay."""

from tests.mutants.mutant import Mutant

CONTRACT = "tests/contracts/test_witness.py"
GUARD = "tests/workflows/test_guard.py"
WITNESSING = "tests/workflows/test_witnessing.py"
STORES = "tests/store/witness"

MUTANTS = [
    Mutant(
        name="witness None = 0",
        incident="Whoever deletes the witness makes a restored backup look like the newest database.",
        file="service/workflows/witnessing.py",
        find="return WitnessLost() if transaction.head.seq > 0 else None",
        put="return None",
        killed_by=f"{WITNESSING}::test_a_lost_witness_is_never_made_anew_in_silence",
    ),
    Mutant(
        name="an unreadable witness is an empty one",
        incident="A disk that is away at the start opens a dataset that nobody could hold against anything.",
        file="service/workflows/witnessing.py",
        find="            self._is_unreadable = True\n            raise Unavailable from fault",
        put="            self._is_unreadable = bool(fault)\n            return []",
        killed_by=f"{WITNESSING}::test_a_witness_that_cannot_be_read_is_not_taken_for_an_empty_one",
    ),
    Mutant(
        name="a database behind its witness is opened",
        incident="A restored backup answers at once: every budget that was spent since is new.",
        file="service/workflows/witnessing.py",
        find="return Fenced() if unaccounted(dataset, transaction, history) else None",
        put="return None",
        killed_by=f"{WITNESSING}::test_everything_is_closed_behind_the_witness",
    ),
    Mutant(
        name="what was read is taken for told",
        incident="An answer that only Redis had heard of leaves again, and a power cut takes every trace of it.",
        file="service/workflows/witnessing.py",
        find="if self._told is not None and self._told.position >= ours.position:",
        put="if self._known is not None and self._known.position >= ours.position:",
        killed_by=f"{WITNESSING}::test_the_first_witness_knows_what_leaves_even_if_the_second_knew_before",
    ),
    Mutant(
        name="a number of a lost history is taken for told",
        incident="After a restore an answer is fetched that no witness knows, for its number was known once.",
        file="service/workflows/witnessing.py",
        find="            head = transaction.head\n        self.vouch(head)\n",
        put="            head = transaction.head\n        if self._told is None or self._told.seq < head.seq:\n"
        "            self.vouch(head)\n",
        killed_by=f"{WITNESSING}::test_who_slept_through_a_restore_takes_no_number_for_told",
    ),
    Mutant(
        name="another history of the same length",
        incident="A clone takes the database's place, and what was answered from the original is in nobody's account.",
        file="service/workflows/witnessing.py",
        find="return record.hash == (",
        put="return True or (",
        killed_by=f"{WITNESSING}::test_a_history_of_the_same_length_put_under_a_running_house_is_noticed",
    ),
    Mutant(
        name="the witnessed hash is not compared",
        incident="A database and its clone answer in turn, each with the whole budget.",
        file="service/workflows/witnessing.py",
        find="if _continues(record, head) and hashes.get(record.seq) == record.hash]",
        put="if _continues(record, head) and record.seq in hashes]",
        killed_by=f"{WITNESSING}::test_a_clone_that_writes_first_is_found_out_at_the_next_write",
    ),
    Mutant(
        name="a guard waits for a second connection",
        incident="Replicas that meet for the first time hold a connection each, wait for another, and answer nobody.",
        file="service/workflows/witnessing.py",
        find="                begun_meanwhile = lock and self._known is None"
        " and self._tell(transaction.head) is not None\n",
        put="                if lock and self._known is None:\n                    self.vouch(transaction.head)\n",
        killed_by=f"{GUARD}::test_replicas_that_meet_for_the_first_time_need_one_connection_each[memory-False]",
    ),
    Mutant(
        name="less than the worst case is burned",
        incident="Of several answers that were lost only the first is paid for.",
        file="service/workflows/reconciling.py",
        find="total = max(each.worst_case_total_units for each in lost)",
        put="total = min(each.worst_case_total_units for each in lost)",
        killed_by=f"{WITNESSING}::test_what_was_lost_is_burned_for_everybody_and_no_more",
    ),
    Mutant(
        name="a saturated sum is taken at its word",
        incident="Once the sum of worst cases has lost count, what was lost costs nothing.",
        file="service/workflows/reconciling.py",
        find="missing = CHARGE_UNITS_MAX if total >= CHARGE_UNITS_MAX else max(total - base_units, burn_units)",
        put="missing = max(total - base_units, burn_units)",
        killed_by=f"{WITNESSING}::test_a_sum_that_has_lost_count_burns_everything",
    ),
    Mutant(
        name="a burn does not raise the fence",
        incident="The copy that was given up goes on beside the reconciled one.",
        file="service/workflows/reconciling.py",
        find="fence=max(head.fence, *(each.fence for each in history)) + 1,",
        put="fence=head.fence,",
        killed_by=f"{WITNESSING}::test_what_was_lost_is_burned_for_everybody_and_no_more",
    ),
    Mutant(
        name="a fence that was witnessed is not counted",
        incident="Two copies of a database are reconciled to the same fence, and neither knows of the other.",
        file="service/workflows/reconciling.py",
        find="fence=max(head.fence, *(each.fence for each in history)) + 1,",
        put="fence=head.fence + 1,",
        killed_by=f"{WITNESSING}::test_people_lost_with_another_history_are_counted_as_lost",
    ),
    Mutant(
        name="the fence is not compared",
        incident="A history that was given up is put back, and passes for what came after it.",
        file="service/workflows/records.py",
        find="return self.fence, self.seq, self.acts",
        put="return 0 * self.fence, self.seq, self.acts",
        killed_by=f"{CONTRACT}::test_a_witness_moves_only_forward[memory]",
    ),
    Mutant(
        name="a burn skips the erased",
        incident="Whoever left, came back and left again with the restore comes back with what was spent.",
        file="service/workflows/burning.py",
        find="slots, accounts = np.sort(transaction.individuals().slots), state.memory.accounts",
        put="people, accounts = transaction.individuals(), state.memory.accounts\n"
        "    slots = np.sort(people.slots[people.present])",
        killed_by=f"{WITNESSING}::test_whoever_was_erased_is_burned_too",
    ),
    Mutant(
        name="whoever joins after a burn joins in full",
        incident="People whom the restore has forgotten register again, with a budget that they have spent.",
        file="service/workflows/uploads.py",
        find="limits[new] = np.maximum(limits[new] - self.transaction.head.joining_units, 0)",
        put="limits[new] = np.maximum(limits[new], 0)",
        killed_by=f"{WITNESSING}::test_people_who_were_lost_do_not_come_back_with_a_fresh_budget",
    ),
    Mutant(
        name="as many people are the same people",
        incident="People of a history that was given up are forgotten, because others have taken their slots.",
        file="service/workflows/reconciling.py",
        find="each.fence == shared.fence and each.slots <= shared.slots for each in lost",
        put="each.slots <= shared.slots for each in lost",
        killed_by=f"{WITNESSING}::test_people_lost_with_another_history_are_counted_as_lost",
    ),
    Mutant(
        name="a torn record is believed",
        incident="Half a record closes a sound dataset, or stands for an end that was never reached.",
        file="service/store/witness/records.py",
        find=" or checksum != _checksum(dataset, body):",
        put=" or not checksum:",
        killed_by=f"{STORES}/test_file.py::test_a_write_that_tears_at_any_byte_leaves_the_record_before",
    ),
    Mutant(
        name="a lower witness is accepted",
        incident="A late writer takes the witness back, and a restore to where it stood is not noticed.",
        file="service/store/witness/file.py",
        find="is_news = before is None or before.position < record.position",
        put="is_news = before is None or before.position != record.position",
        killed_by=f"{CONTRACT}::test_a_witness_moves_only_forward[file]",
    ),
    Mutant(
        name="Redis' witness moves backward",
        incident="The same in Redis, which is all that is left when the folder is lost.",
        file="service/store/witness/redis.py",
        find="or string.sub(held, 1, {_POSITION_BYTES}) < string.sub(ARGV[1], 1, {_POSITION_BYTES})",
        put="or string.sub(held, 1, {_POSITION_BYTES}) ~= string.sub(ARGV[1], 1, {_POSITION_BYTES})",
        killed_by=f"{CONTRACT}::test_a_witness_moves_only_forward[redis]",
    ),
    Mutant(
        name="Redis' witness needs no seal",
        incident="Whoever reaches Redis closes every dataset, and has everybody's budget burned.",
        file="service/store/witness/redis.py",
        find="if not compare_digest(held[end:], self._seal(held[:end])):",
        put="if not compare_digest(held, held):",
        killed_by=f"{STORES}/test_redis.py::test_a_record_of_another_dataset_or_another_pepper_is_unknown",
    ),
]
