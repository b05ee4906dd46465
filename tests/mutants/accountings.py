"""Seeded bugs of accountings: budgets, promises and odometers by another theorem than the one that is stated."""

from tests.mutants.mutant import Mutant

_BUDGETS = "tests/accounting/test_accountings.py::test_the_budgets_of_one_guarantee"

MUTANTS = [
    Mutant(
        name="the divergence for the amount",
        incident="A limit under one order is not divided by it: a promise of that many times the epsilon.",
        file="service/accounting/conversions.py",
        find="return (level - lost / (a - 1)) / a",
        put="return level - lost / (a - 1)",
        killed_by=_BUDGETS,
    ),
    Mutant(
        name="a conversion that adds what it may not",
        incident="The optimal conversion forgets ln(1 - 1/a), which is below zero: budgets too large.",
        file="service/accounting/conversions.py",
        find="lost += (a - 1) * _REALS.log1p(-1 / a) - _REALS.log(a)",
        put="lost += (a - 1) * _REALS.log1p(-1 / a) - 2 * _REALS.log(a)",
        killed_by=_BUDGETS,
    ),
    Mutant(
        name="zcdp by the curve of a Gaussian",
        incident="A budget of zCDP is certified by the exact curve, of which zCDP promises nothing.",
        file="service/accounting/accountings.py",
        find="return units_of(amount_of_best_order(epsilon, delta, self.conversion))",
        put="return GAUSSIAN.budget_units(epsilon=epsilon, delta=delta)",
        killed_by=_BUDGETS,
    ),
    Mutant(
        name="budgets rounded up",
        incident="A unit more than the conversion gives.",
        file="service/accounting/conversions.py",
        find="int(_REALS.floor(amount / MARGIN * UNITS_PER_RHO))",
        put="int(_REALS.ceil(amount / MARGIN * UNITS_PER_RHO))",
        killed_by="tests/accounting/test_accountings.py::test_a_budget_is_rounded_down_and_there_and_back",
    ),
    Mutant(
        name="half of a replaced record",
        incident="Group privacy of two is told with the epsilon of one.",
        file="service/accounting/accountings.py",
        find="return 2 * _least(is_within, highest=max(lowest, 0.0))",
        put="return _least(is_within, highest=max(lowest, 0.0))",
        killed_by="tests/accounting/test_accountings.py::test_replacing_a_record_under_one_order_is_by_group_privacy",
    ),
    Mutant(
        name="an odometer of what is spent alone",
        incident="The loss under one order is told without the share of delta: every second reader sees more.",
        file="service/accounting/accountings.py",
        find="return (self.order * spent_units / UNITS_PER_RHO - float(delta.ln()) / (self.order - 1)) * _ROUNDING",
        put="return self.order * spent_units / UNITS_PER_RHO * _ROUNDING",
        killed_by="tests/accounting/test_accountings.py::test_the_odometer_of_one_order_has_no_levels",
    ),
    Mutant(
        name="the accounting of another dataset",
        incident="The genesis is checked with the default accounting, so that a changed one is not found.",
        file="service/workflows/maintenance/verify/registration.py",
        find='"accounting": record.accounting.document,',
        put='"accounting": "gdp",',
        killed_by="tests/workflows/test_accountings.py::test_a_changed_accounting_is_found[guarantee1]",
    ),
]
