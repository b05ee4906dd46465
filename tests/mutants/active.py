"""Seeded bugs of coverage as a query: whose account is read, at which unit, and which answers may be reused."""

from tests.mutants.mutant import Mutant

QUERY = "tests/query/test_active.py"
ENGINE = "tests/engine/test_evaluate.py"
SERVICE = "tests/workflows/queries/test_active_queries.py"
ROOM = "np.greater_equal(accounts.room[index], room_units)"

MUTANTS = [
    Mutant(
        name="a share of another's account",
        incident="One individual's record decides whether the next is counted, and who is charged for it.",
        file="service/engine/evaluate.py",
        find=ROOM,
        put="np.greater_equal(np.roll(accounts.room, 1)[index], room_units)",
        killed_by="tests/laws/test_separability.py::"
        "test_a_vector_is_the_same_alone_in_a_crowd_and_after_deletions[active]",
    ),
    Mutant(
        name="a share of the largest account",
        incident="The threshold moves with what the richest individual has left.",
        file="service/engine/evaluate.py",
        find=ROOM,
        put="np.greater_equal(accounts.room[index], min(room_units, int(accounts.room.max())))",
        killed_by=f"{ENGINE}::test_nobody_is_counted_where_all_are_exhausted",
    ),
    Mutant(
        name="a share of the individual's limit",
        incident="An individual with a small limit counts as one that has all of the budget left.",
        file="service/engine/evaluate.py",
        find=ROOM,
        put="np.greater_equal(accounts.room[index], np.minimum(accounts.limits[index], room_units))",
        killed_by=f"{ENGINE}::test_an_individual_is_counted_while_its_own_account_has_the_share",
    ),
    Mutant(
        name="nobody has exactly the share",
        incident="An individual with all of its budget left is not counted at share 1.",
        file="service/engine/evaluate.py",
        find=ROOM,
        put="np.greater(accounts.room[index], room_units)",
        killed_by=f"{ENGINE}::test_an_individual_is_counted_while_its_own_account_has_the_share",
    ),
    Mutant(
        name="a share in place of the condition",
        incident="A query for the active women of a town counts everybody who is active, and charges them.",
        file="service/engine/evaluate.py",
        find="block.touched.among(chosen(index))",
        put="chosen(index)",
        killed_by=f"{ENGINE}::test_a_record_counts_as_its_values_say",
    ),
    Mutant(
        name="a threshold rounded down",
        incident="An individual counts although it has less than the share left.",
        file="service/query/active.py",
        find="    return ceil(share * budget_units)",
        put="    return int(share * budget_units)",
        killed_by=f"{QUERY}::test_the_threshold_is_the_share_in_whole_units_rounded_up",
    ),
    Mutant(
        name="a threshold in doubles",
        incident="In a large budget an individual counts with units less than the share.",
        file="service/query/active.py",
        find="    return ceil(share * budget_units)",
        put="    return ceil(float(share) * budget_units)",
        killed_by=f"{QUERY}::test_the_threshold_is_the_share_in_whole_units_rounded_up",
    ),
    Mutant(
        name="some who are counted cannot pay",
        incident="The number is of those who have the share, and those who cannot pay for it are missing from it.",
        file="service/query/active.py",
        find="    if item.units >= worst_case_units:",
        put="    if 2 * item.units >= worst_case_units:",
        killed_by=f"{QUERY}::test_all_who_are_counted_can_pay_or_a_share_is_named_that_will_do",
    ),
    Mutant(
        name="the number of an hour ago",
        incident="An analyst reads how many were active before the last queries, and takes them for active.",
        file="service/query/plan.py",
        find="reuse=query.reuse and not isinstance(items[0], Active | Exhausted)",
        put="reuse=query.reuse",
        killed_by=f"{SERVICE}::test_every_query_is_answered_anew_and_charged",
    ),
    Mutant(
        name="an archived request without reuse is another",
        incident="An answer to a query that is refused today is not found under its key.",
        file="service/query/language.py",
        find="return self.reuse and not isinstance(self.select[0], ActiveItem | ExhaustedItem)",
        put="return self.reuse",
        killed_by=f"{SERVICE}::test_an_answer_is_found_under_its_key_when_the_query_is_refused_today",
    ),
    Mutant(
        name="reuse that was asked for",
        incident="A request says that an earlier answer will do, and pays for another without being told.",
        file="service/query/active.py",
        find='if query.reuse and "reuse" in query.model_fields_set:',
        put="if False:",
        killed_by=f"{QUERY}::test_a_refusal_names_the_field_and_says_why",
    ),
    Mutant(
        name="a request without reuse is another",
        incident="An answer that was deleted is put back under a request that nobody made: its key conflicts.",
        file="service/workflows/maintenance/rebuild_answer.py",
        find="reuse=reuse and plan.reuse",
        put="reuse=reuse",
        killed_by=f"{SERVICE}::test_a_deleted_answer_is_made_again_without_saying_how_it_was_asked",
    ),
    Mutant(
        name="an answer that was reused verifies",
        incident="An old number of active individuals, given out as if it were a new one, is not found.",
        file="service/workflows/maintenance/verify/answers.py",
        find="[True] if plan is None or plan.reuse else []",
        put="[True]",
        killed_by=f"{SERVICE}::test_verification_finds_an_answer_that_was_reused",
    ),
    Mutant(
        name="a forecast of individuals that pay to the last unit",
        incident="The cliff of a query for active individuals seems farther than it is.",
        file="service/workflows/reads/forecast.py",
        find="    unspent = 0 if plan.room_units is None else plan.room_units - units\n",
        put="    unspent = 0\n",
        killed_by=f"{SERVICE}::test_a_forecast_is_what_happens",
    ),
    Mutant(
        name="accounts are looked at for nothing",
        incident="A query for active individuals is late: reading what is left has no price.",
        file="service/query/cost.py",
        find="    time_ns += 0.0 if plan.room_units is None else rows * speed.leaf_row * _ROOM\n",
        put="",
        killed_by="tests/query/test_cost.py::test_what_is_left_is_priced_as_a_condition_on_a_column_of_eight_bytes",
    ),
]
