"""Seeded bugs of the precision of each select item: steps, parts of a share, clips, and what an entry binds."""

from tests.mutants.mutant import Mutant

_LAW = "tests/engine/test_evaluate.py::test_each_item_is_counted_in_steps_of_its_own"
_ANSWER = "tests/workflows/writer/test_batch.py::test_each_item_is_answered_and_charged_by_its_own_sigma"
_SCALE = "tests/query/test_item_scale.py"

MUTANTS = [
    Mutant(
        name="a value beyond the domain takes rows of others out",
        incident="A list of values of a calculated number found no row where one of the values was below its domain.",
        file="service/query/conditions.py",
        find="        cuts[low] = cuts.get(low, 0) + 1\n",
        put="        cuts[low] = cuts.get(low, 0) + (low != high)\n",
        killed_by="tests/query/test_conditions.py::test_a_value_beyond_the_domain_changes_nothing_of_a_list",
    ),
    Mutant(
        name="a quotient is what doubles say",
        incident="A value at a whole number of steps is a step short: counts differ from one sigma to the next.",
        file="service/query/item_steps.py",
        find="        found += np.floor_divide(residues, self.divisors, out=residues)\n",
        put="",
        killed_by="tests/query/test_item_steps.py::test_a_quotient_is_the_fraction_truncated_toward_zero",
    ),
    Mutant(
        name="negative values are rounded down",
        incident="A refund is a step longer than its bound: the charge exceeds the public worst case.",
        file="service/query/item_steps.py",
        find="        return magnitude // self.divisor if value >= 0 else -(magnitude // self.divisor)",
        put="        return magnitude // self.divisor if value >= 0 else -(-(-magnitude // self.divisor))",
        killed_by="tests/query/test_item_steps.py::test_a_quotient_is_the_fraction_truncated_toward_zero",
    ),
    Mutant(
        name="every item gets the whole share",
        incident="A query of five items costs five times what was asked.",
        file="service/query/item_precision.py",
        find="floor(units * part / sum(parts))",
        put="floor(units * part / max(parts))",
        killed_by="tests/query/test_item_precision.py::test_the_parts_of_a_share_are_within_it",
    ),
    Mutant(
        name="a part's sigma is rounded down",
        incident="The worst case of an item is more than its part.",
        file="service/query/item_precision.py",
        find="- 1) + 1, exponent)",
        put="- 1), exponent)",
        killed_by="tests/query/test_item_precision.py::test_a_worst_case_gives_the_least_sigma_of_24_bits",
    ),
    Mutant(
        name="one number for unlike items",
        incident="A count of 139 is answered as 107,745.",
        file="service/workflows/queries/submit.py",
        find="            refuse_uneven(query, plan.bounds)\n",
        put="            pass\n",
        killed_by="tests/workflows/writer/test_batch.py::"
        "test_one_number_for_unlike_items_is_refused_with_the_numbers_that_were_meant",
    ),
    Mutant(
        name="an earlier share is divided",
        incident="A stored answer no longer follows from its entry.",
        file="service/workflows/maintenance/verify/answers.py",
        find="    query = with_numbers(parse_query(canonical), partial(kept, analyst_id))\n",
        put="    from service.query.item_precision import by_item\n    query = by_item(parse_query(canonical))\n",
        killed_by="tests/workflows/writer/test_batch.py::test_an_earlier_answer_with_one_sigma_for_all_stays_as_it_is",
    ),
    Mutant(
        name="an individual is counted in the steps of a row",
        incident="The number of people comes in the unit of another item.",
        file="service/engine/evaluate.py",
        find="np.where(is_once, query.counted_once.value, entries.values)",
        put="np.where(is_once, query.singles[0].values({}, 1)[0], entries.values)",
        killed_by="tests/engine/test_evaluate.py::test_people_counted_once_are_counted_in_steps_of_their_item",
    ),
    Mutant(
        name="the first clip is everybody's",
        incident="An item is clipped by another's bound.",
        file="service/engine/sparse_vectors.py",
        find="clips.norms_squared_max[items[order][firsts]]",
        put="clips.norms_squared_max[np.zeros_like(firsts)]",
        killed_by=_LAW,
    ),
    Mutant(
        name="the worst case of the first item alone",
        incident="Allowances and coverage are of one item's cost.",
        file="service/query/item_scale.py",
        find="worst_case_units=worst_case_units(sum(clips), sigma_steps)",
        put="worst_case_units=worst_case_units(clips[0], sigma_steps)",
        killed_by=f"{_SCALE}::test_each_item_has_the_sigma_that_is_asked_for",
    ),
    Mutant(
        name="an item may have two steps",
        incident="Beside a precise item another is lost in rounding.",
        file="service/query/item_scale.py",
        find="ITEM_STEPS_MIN: Final = 2**18",
        put="ITEM_STEPS_MIN: Final = 2",
        killed_by=f"{_SCALE}::test_what_no_steps_suit_is_refused_by_its_field",
    ),
    Mutant(
        name="sums beyond 64 bits",
        incident="A sum over all individuals wraps around.",
        file="service/query/item_scale.py",
        find="squared * request.known.capacity**2 <= TOTAL_MAX**2",
        put="squared <= TOTAL_MAX**2",
        killed_by=f"{_SCALE}::test_steps_are_larger_where_numbers_would_not_fit_and_smaller_under_much_noise",
    ),
    Mutant(
        name="a hash that leaves the sigmas out",
        incident="The noise of an item can be told anew afterwards.",
        file="service/workflows/model/ledger_entry.py",
        find='{"sigmas": entry.item_sigmas} if entry.sigmas else {}',
        put="{}",
        killed_by="tests/workflows/model/test_ledger_entry.py::test_a_hash_binds_every_field_and_the_row_before",
    ),
    Mutant(
        name="numbers in the steps of the first item",
        incident="A sum is shown in the unit of the count.",
        file="service/query/stated_noise.py",
        find='[noise.grid[item["item"]] for item in items]',
        put="[noise.grid[0] for item in items]",
        killed_by=_ANSWER,
    ),
]
