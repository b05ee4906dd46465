"""Seeded bugs of what replicas share: a cache that is believed too much."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        name="trust Redis spent",
        incident="Entries of another history are debited: people who are out of budget can pay again.",
        file="service/workflows/tail.py",
        find="return chained if own_hash == head.hash else []",
        put="return chained",
        killed_by="tests/workflows/test_tail.py::test_another_history_of_the_same_length_is_not_used",
    ),
    Mutant(
        name="an entry's own hash is not checked",
        incident="Whoever changes the charges of a shared entry and leaves its hash makes people richer.",
        file="service/workflows/tail.py",
        find="if entry.hash == chain_hash(entry)}",
        put="if entry.hash}",
        killed_by="tests/workflows/test_tail.py::test_an_entry_that_was_changed_is_passed_over",
    ),
    Mutant(
        name="cache answer under wrong principal",
        incident="Two analysts choose the same key, and one is given the other's answer by another replica.",
        file="service/store/cache/sealed.py",
        find='return _label("reply", genesis.hex(), principal_id.hex, key)',
        put='return _label("reply", genesis.hex(), key)',
        killed_by="tests/contracts/test_cache.py::test_a_reply_is_found_by_dataset_principal_and_key_alone[memory]",
    ),
    Mutant(
        name="page without seq",
        incident="An individual is shown a budget as it was before the last questions.",
        file="service/workflows/accounts.py",
        find="if each.place == place}",
        put="if each.place.genesis == place.genesis}",
        killed_by="tests/workflows/test_accounts.py::test_slices_of_another_moment_are_as_good_as_none",
    ),
    Mutant(
        name="a slice moves back",
        incident="A slow replica puts an older page over a newer one, again and again.",
        file="service/store/cache/memory.py",
        find="if held is None or held[:POSITION_BYTES] < value[:POSITION_BYTES]:",
        put="if held is None or value:",
        killed_by="tests/contracts/test_cache.py::test_a_slice_moves_only_forward[memory]",
    ),
    Mutant(
        name="cache not authenticated",
        incident="Whoever reaches Redis writes answers and budgets that everybody believes.",
        file="service/store/cache/sealing.py",
        find='return AESGCM(hmac.digest(self._key, b"value\\0" + salt, hashlib.sha256))',
        put="return AESGCM(hashlib.sha256(salt).digest())",
        killed_by="tests/store/cache/test_sealing.py::test_what_was_closed_opens",
    ),
    Mutant(
        name="a reply of a ledger that is gone",
        incident="After a restore a replica hands out an answer whose entry was burned, and others answer anew.",
        file="service/workflows/recalling.py",
        find="return shared if head.fence == shared.fence and entry_hash == shared.entry_hash else None",
        put="return shared if head.fence else None",
        killed_by="tests/workflows/test_recalling.py::test_a_reply_of_another_history_is_not_given",
    ),
    Mutant(
        name="shared before it is witnessed",
        incident="Another replica hands out an answer that no witness knows; a restore forgets that it was given.",
        file="service/workflows/desk.py",
        find='        self._guard.vouch(head)\n        reach("witnessed")\n',
        put="        self._exchange.committed(self._record, head, batch.entries, batch.fresh)\n"
        '        self._guard.vouch(head)\n        reach("witnessed")\n',
        killed_by="tests/workflows/test_recalling.py::test_what_no_witness_knows_is_told_to_nobody",
    ),
    Mutant(
        name="the cache shuts the door",
        incident="Whoever owns Redis keeps an analyst out for ever.",
        file="service/workflows/limiting.py",
        find="wait_s > 0 and not is_quiet:",
        put="wait_s > 0:",
        killed_by="tests/workflows/test_limiting.py::test_whoever_was_quiet_is_let_in_whatever_the_cache_says",
    ),
]
