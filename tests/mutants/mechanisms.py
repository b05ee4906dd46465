"""Seeded bugs of Laplace noise in queries: another law, another price, or vectors that its price does not bound."""

from tests.mutants.mutant import Mutant

_OTHERS = "tests/query/test_mechanism.py::test_other_queries_are_refused_by_their_field"

MUTANTS = [
    Mutant(
        name="a Gaussian in the place of Laplace noise",
        incident="The price is that of Laplace noise, and the noise another: pure differential privacy is none.",
        file="service/workflows/writer/batch.py",
        find="draw = rounded_gaussian if plan.laplace is None else rounded_laplace",
        put="draw = rounded_gaussian",
        killed_by="tests/workflows/test_laplace.py::test_the_noise_is_laplace_noise",
    ),
    Mutant(
        name="an entry that forgets its mechanism",
        incident="A replay prices Laplace noise as a Gaussian: a start from the ledger gives budgets back.",
        file="service/workflows/writer/batch.py",
        find="            mechanism=mechanism,\n",
        put="",
        killed_by="tests/workflows/test_laplace.py::test_each_is_charged_the_price_of_its_own_number",
    ),
    Mutant(
        name="the price of a Gaussian for Laplace noise",
        incident="Laplace noise of scale b is charged v^2 / (2 b^2), less than half of its price under pure.",
        file="service/core/release.py",
        find="    if terms.laplace is not None:\n",
        put="    if terms.laplace is not None and terms.norm_squared_max < 0:\n",
        killed_by="tests/core/test_release.py::test_laplace_noise_is_charged_by_its_own_prices",
    ),
    Mutant(
        name="Laplace noise for events in groups",
        incident="An individual in two groups is charged by the L2 norm of what the L1 norm prices.",
        file="service/query/mechanism.py",
        find="if is_of_events and query.group_by:",
        put="if is_of_events and query.where and query.group_by:",
        killed_by=_OTHERS,
    ),
    Mutant(
        name="Laplace noise for several items",
        incident="The same, for a count and a sum of one individual.",
        file="service/query/mechanism.py",
        find="if len(query.select) > 1 or query.is_by_item:",
        put="if query.is_by_item:",
        killed_by=_OTHERS,
    ),
    Mutant(
        name="a Gaussian under pure differential privacy",
        incident="A Gaussian is answered and charged in rho, where epsilon is promised.",
        file="service/query/plan.py",
        find="query.mechanism == GAUSSIAN and (pricing is None or pricing.has_gaussian)",
        put="query.mechanism == GAUSSIAN",
        killed_by="tests/query/test_mechanism.py::test_a_mechanism_without_a_price_is_refused",
    ),
    Mutant(
        name="an entry priced by another accounting",
        incident="An entry of Laplace noise under a cheaper accounting passes verification.",
        file="service/workflows/maintenance/verify/ledger.py",
        find='entry.kind == "query" and not entry.tick and entry.mechanism not in',
        put='entry.kind == "burn" and not entry.tick and entry.mechanism not in',
        killed_by="tests/workflows/test_laplace.py::test_an_entry_that_another_accounting_has_priced_is_found",
    ),
    Mutant(
        name="pure differential privacy with a delta",
        incident="A guarantee of epsilon and delta is taken for epsilon alone, and the delta is dropped.",
        file="service/workflows/model/stated_guarantee.py",
        find="if not accounting.has_delta and (self.epsilon is None or self.delta is not None):",
        put="if not accounting.has_delta and self.epsilon is None:",
        killed_by="tests/workflows/test_laplace.py::test_a_guarantee_of_another_accounting_is_refused",
    ),
]
