"""Seeded bugs of places: the threads and sessions in which one kind of work, or one principal, keeps others waiting."""

from tests.mutants.mutant import Mutant

PLACE = "tests/api/test_place.py"
LOOKUPS = "tests/api/test_lookups.py"

MUTANTS = [
    Mutant(
        name="place without a bound",
        incident="1,500 requests of one person wait, and the person is not told.",
        file="service/api/place.py",
        find="own.present >= self.waiting_max:",
        put="own.present >= 10**9:",
        killed_by=f"{PLACE}::test_beyond_its_bound_a_principal_is_refused_in_words_and_another_is_not",
    ),
    Mutant(
        name="all threads for one",
        incident="One principal's long work keeps all others of the place waiting.",
        file="service/api/place.py",
        find="self.threads_own = max(threads // 2, 1)",
        put="self.threads_own = threads",
        killed_by=f"{PLACE}::test_one_principal_is_worked_on_in_half_of_the_threads_and_others_find_one_at_once",
    ),
    Mutant(
        name="no turns",
        incident="A crowd's requests are all worked on before another principal's first.",
        file="service/api/place.py",
        find="        self._owners.move_to_end(owner)\n",
        put="",
        killed_by=f"{PLACE}::test_principals_take_turns",
    ),
    Mutant(
        name="one place for all datasets",
        incident="An upload to one dataset stops the acts on another.",
        file="service/api/place.py",
        find="        place = self._places.setdefault(which, ",
        put='        which = ""\n        place = self._places.setdefault(which, ',
        killed_by=f"{PLACE}::test_a_full_place_of_one_name_is_not_felt_in_another",
    ),
    Mutant(
        name="strangers without a bound",
        incident="Junk keys wait by the thousand.",
        file="service/api/lookups.py",
        find="len(waiting) >= self._strangers_max",
        put="len(waiting) >= 10**9",
        killed_by=f"{LOOKUPS}::test_beyond_the_bound_strangers_are_refused_in_words_and_familiar_keys_are_not",
    ),
    Mutant(
        name="a look-up for each key",
        incident="3,000 junk keys are 3,000 statements, and an honest key waits for them all.",
        file="service/api/lookups.py",
        find="BATCH_MAX: Final = 256",
        put="BATCH_MAX: Final = 1",
        killed_by=f"{LOOKUPS}::test_an_honest_key_among_thousands_of_junk_ones_waits_for_few_look_ups",
    ),
    Mutant(
        name="requests begin as they come",
        incident="1,500 requests of one principal at once keep all others waiting for a second.",
        file="service/api/turns.py",
        find="        if self._begun < self._begun_max and not self._waiting:",
        put="        if True:",
        killed_by="tests/api/test_turns.py::test_a_round_begins_so_many_at_most",
    ),
    Mutant(
        name="first come, first begun",
        incident="A crowd's requests all begin before another principal's one.",
        file="service/api/turns.py",
        find="        self._waiting.setdefault(owner_of(), deque())",
        put='        self._waiting.setdefault("", deque())',
        killed_by="tests/api/test_turns.py::test_principals_take_turns",
    ),
    Mutant(
        name="strangers share the turns of probes",
        incident="3,000 junk keys keep /livez waiting, and an orchestrator ends the process.",
        file="service/api/middleware/in_turn.py",
        find='return PROBING if request.scope["path"] in PROBES else WITHOUT_CREDENTIAL',
        put="return STRANGERS",
        killed_by="tests/api/middleware/test_in_turn.py::test_all_others_share_turns_by_kind[a probe]",
    ),
    Mutant(
        name="several numbers for one item are passed over",
        incident="A list of clips for moments is taken for no clip.",
        file="service/query/item_precision.py",
        find='        (number,) = one_for_each(clip, 1, "per_individual.l2_clip")',
        put="        number = clip[0]",
        killed_by="tests/query/test_item_precision.py::test_several_numbers_for_one_item_are_refused[clip-moments]",
    ),
    Mutant(
        name="acts of nobody",
        incident="An individual's acts are not counted, and have the turns of the server's own.",
        file="service/workflows/individual.py",
        find=".act(operation_of(key), principal=principal.id)",
        put=".act(operation_of(key))",
        killed_by="tests/workflows/writer/test_queue.py::"
        "test_an_act_waits_in_the_turn_of_its_principal_and_the_servers_own_in_the_datasets",
    ),
]
