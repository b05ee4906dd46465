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
        killed_by=f"{LOOKUPS}::test_a_familiar_key_is_in_the_next_look_up_however_many_strangers_wait",
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
