"""Seeded bugs of parameters by hash and of long answers: whose numbers, when they are kept, and how they come back."""

from tests.mutants.mutant import Mutant

STORES = "tests/contracts/test_parameters.py"
QUERIES = "tests/workflows/model/test_parameters.py"
LONG = "tests/workflows/model/test_long_answers.py"

MUTANTS = [
    Mutant(
        name="parameters are kept without their entry",
        incident="Numbers of a query that was never answered are there for ever.",
        file="service/store/postgres/sessions.py",
        find="for kept in extension.kept if is_moved else ():",
        put="for kept in extension.kept:",
        killed_by=f"{STORES}::test_a_conditional_append_keeps_them_if_it_appends[postgres-True]",
    ),
    Mutant(
        name="another analyst's hash is known",
        incident="Whoever guesses an analyst's parameters learns whether it has used them.",
        file="service/store/postgres/snapshot.py",
        find="AND principal_id = %s AND sha256 = %s",
        put="AND (principal_id = %s OR true) AND sha256 = %s",
        killed_by=f"{STORES}::test_they_are_found_by_their_analyst_and_hash_alone[postgres]",
    ),
    Mutant(
        name="parameters of a reused answer are not kept",
        incident="A request that was answered cannot be repeated by its hash.",
        file="service/workflows/writer/batch.py",
        find="for given in request.plan.parameters:",
        put="for given in request.plan.parameters if entry is not reused else ():",
        killed_by=f"{QUERIES}::test_another_analyst_does_not_know_them",
    ),
    Mutant(
        name="parameters that are known are written again",
        incident="A step by its hash stores megabytes once more.",
        file="service/workflows/writer/batch.py",
        find=" and not given.is_kept:",
        put=":",
        killed_by=f"{QUERIES}::test_numbers_are_sent_to_the_store_once",
    ),
    Mutant(
        name="parameters are taken for what they are kept as",
        incident="Changed numbers are asked under the hash of others, and no verification says so.",
        file="service/workflows/model/parameters.py",
        find="return hashlib.sha256(self.numbers).hexdigest() == self.sha256",
        put="return True",
        killed_by=f"{QUERIES}::test_entries_are_planned_again_from_what_is_kept",
    ),
    Mutant(
        name="parameters in another shape are as good",
        incident="A step is made at transposed parameters.",
        file="service/query/model_parameters.py",
        find="if given.shape != shape or given.array is None:",
        put="if given.array is None:",
        killed_by=f"{QUERIES}::test_a_hash_fits_the_shape_that_is_asked_for",
    ),
    Mutant(
        name="only the first array of a query is looked up",
        incident="A query of two models is refused though both are known, and no ledger of such queries is verified.",
        file="service/workflows/model/parameters.py",
        find="hashes_in(query)[:HASHES_MAX]",
        put="hashes_in(query)[:1]",
        killed_by=f"{QUERIES}::test_a_query_may_name_several_arrays",
    ),
    Mutant(
        name="numbers are looked up by the event loop",
        incident="Every request waits for the database while one query's numbers are read.",
        file="service/workflows/analyst.py",
        find="            and not query.hashed\n",
        put="",
        killed_by=f"{QUERIES}::test_a_query_that_names_a_hash_is_not_submitted_at_once",
    ),
    Mutant(
        name="the parameters of a unit are not bounded",
        incident="One request of many hashes fills the memory before it has a cost.",
        file="service/workflows/queries/submit.py",
        find="            if left < 0:\n",
        put="            if left < -(2**60):\n",
        killed_by=f"{QUERIES}::test_a_query_names_a_bounded_number_of_arrays",
    ),
    Mutant(
        name="an array is read as often as it is mentioned",
        incident="A body of megabytes stands for gigabytes.",
        file="service/api/query_bodies.py",
        find="if (is_hashed, name) not in made:",
        put="if True:",
        killed_by="tests/api/test_query_bodies.py::test_parameters_of_a_prediction_are_known_by_their_hash_too[rows]",
    ),
    Mutant(
        name="parameters column by column",
        incident="An array in Fortran's order is read transposed.",
        file="service/api/query_bodies.py",
        find="""order="F" if b"'fortran_order': True" in header[0] else "C\"""",
        put='order="C"',
        killed_by="tests/api/test_query_bodies.py::test_parameters_are_an_array_of_one_dimension_or_two",
    ),
    Mutant(
        name="the numbers of a long answer without its grid",
        incident="An answer that is fetched again says other numbers.",
        file="service/workflows/model/long_answers.py",
        find="numbers = in_query_units(steps, grid_log2=grid_log2,",
        put="numbers = in_query_units(steps, grid_log2=0,",
        killed_by=f"{LONG}::test_numbers_come_back_byte_for_byte",
    ),
    Mutant(
        name="short answers lose their numbers too",
        incident="An answer with labels is told from a long one by its size alone.",
        file="service/workflows/model/long_answers.py",
        find="if not begin or not after.startswith(_NO_LABELS, end):",
        put="if not begin:",
        killed_by=f"{LONG}::test_an_answer_that_is_stored_whole_stays_as_it_is",
    ),
    Mutant(
        name="every body in npz may be large",
        incident="A request to any address may bring megabytes.",
        file="service/api/middleware/request_limits.py",
        find=' and scope["path"].endswith(NPZ_PATHS):',
        put=":",
        killed_by="tests/api/middleware/test_request_limits.py::TestRequestLimits"
        "::test_a_query_in_npz_has_a_limit_of_its_own",
    ),
    Mutant(
        name="memory of a body in npz is held for ever",
        incident="After some queries no more are admitted.",
        file="service/workflows/admission/admission.py",
        find="            self.memory.release(principal, cost)\n\n\ndef",
        put="            pass\n\n\ndef",
        killed_by="tests/api/test_query_bodies.py::test_a_step_by_array_and_by_hash_is_one_query",
    ),
]
