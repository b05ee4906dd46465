"""Seeded bugs of what an individual is told of its account: the promise, and the bound on the loss so far."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        name="a limit below what is spent becomes that",
        incident="Whoever types 5 % where 14 % is spent has nothing left, for good.",
        file="service/workflows/individual.py",
        find="if limit_units < own.spent:",
        put="if limit_units < 0:",
        killed_by="tests/workflows/test_individual.py::test_a_limit_below_what_is_spent_is_refused_and_changes_nothing",
    ),
    Mutant(
        name="one absurd query speaks for all",
        incident="A query that nobody could ever pay rings the alarm, and the overview says that all are exhausted.",
        file="service/workflows/reads/budget_summary.py",
        find="if 0 < each.worst_case_units <= limit_max",
        put="if 0 < each.worst_case_units <= limit_max * 2**20",
        killed_by="tests/workflows/maintenance/test_summary_points.py::test_one_absurd_query_does_not_ring_the_alarm",
    ),
    Mutant(
        name="the promise of a lowered limit",
        incident="Whoever lowers a limit because of the answers is told an epsilon that those have exceeded.",
        file="service/accounting/statements.py",
        find="promise = promise_of_limit(accounting, largest_limit_units, delta)",
        put="promise = promise_of_limit(accounting, limit_units, delta)",
        killed_by="tests/statistics/test_promise.py::test_no_rule_for_lowering_limits_breaks_what_is_told"
        "[above_what_was_told-True-0]",
    ),
    Mutant(
        name="the naive odometer",
        incident="The bound of one fixed time is shown at all times: two in a hundred exceed it where one may.",
        file="service/accounting/accountings.py",
        find="return min(_level_bound(budget_units, level, delta) for level in range(finest + 1))",
        put="return _level_bound(spent_units, 0, delta)",
        killed_by="tests/accounting/test_odometer.py::test_it_is_the_least_bound_of_the_levels_that_hold_what_is_spent",
    ),
    Mutant(
        name="a whole delta for every level",
        incident="The levels of the odometer fail one by one with delta, and together with many times that.",
        file="service/accounting/accountings.py",
        find="2 * math.log(level + 1)",
        put="0 * math.log(level + 1)",
        killed_by="tests/accounting/test_odometer.py::test_the_levels_share_delta",
    ),
    Mutant(
        name="whole steps rounded down",
        incident="The discretised odometer reads a step less than was spent, and the step is promised for more.",
        file="service/accounting/statements.py",
        find="return -(-spent_units // step_units) * step_units",
        put="return spent_units // step_units * step_units",
        killed_by="tests/accounting/test_statements.py::"
        "test_a_counter_that_begins_again_from_zero_reads_the_same_or_more",
    ),
    Mutant(
        name="a step more at every whole step",
        incident="A total of exactly m steps reads as m + 1, and answers within the limit as beyond it.",
        file="service/accounting/statements.py",
        find="return -(-spent_units // step_units) * step_units",
        put="return (spent_units // step_units + 1) * step_units",
        killed_by="tests/accounting/test_statements.py::"
        "test_what_leaves_within_m_steps_is_what_a_filter_of_m_steps_lets_through",
    ),
    Mutant(
        name="the promise's number for the odometer's",
        incident="The promise stands under the odometer's name, and bounds a tail that it does not bound.",
        file="service/accounting/statements.py",
        find="so_far if so_far < promise.epsilon else None",
        put="min(so_far, promise.epsilon)",
        killed_by="tests/accounting/test_statements.py::test_an_account_by_hand",
    ),
    Mutant(
        name="the limit of now for the largest one",
        incident="In a dataset with limits of one's own, the promise falls with the limit again.",
        file="service/workflows/reads/ledger.py",
        find='limits.append(int(act.detail["limit_before_units"]))',
        put="limits.append(0)",
        killed_by="tests/workflows/reads/test_ledger.py::test_the_promise_covers_the_largest_limit_ever",
    ),
    Mutant(
        name="an unknown limit taken for the limit of now",
        incident="Whoever was erased and came back with a lower limit is promised that one alone.",
        file="service/workflows/reads/ledger.py",
        find='        if act.act == "erase":\n            return None\n',
        put='        if act.act == "erase":\n            continue\n',
        killed_by="tests/workflows/reads/test_ledger.py::test_the_promise_covers_the_largest_limit_ever",
    ),
    Mutant(
        name="what a restore forgot is not promised for",
        incident="Whoever joins after a restore is promised what is left, on top of what was forgotten.",
        file="service/workflows/reads/ledger.py",
        find="    if transaction.head.joining_units > 0:\n        return None\n",
        put="",
        killed_by="tests/workflows/reads/test_ledger.py::test_after_a_restore_with_lost_charges_the_promise_is_the_budget",
    ),
    Mutant(
        name="what a burn could not take counts as not spent",
        incident="A limit that was lowered elsewhere hides what was truly spent from the bound on the loss so far.",
        file="service/workflows/reads/ledger.py",
        find="if self.is_restored and spent_units >= limit_units:",
        put="if False:",
        killed_by="tests/workflows/reads/test_ledger.py::test_after_a_burn_to_the_limit_all_may_be_spent",
    ),
]
