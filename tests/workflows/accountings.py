"""The accountings of a dataset, as a registration states them."""

from typing import Any

from service.accounting.accountings import GAUSSIAN, PURE, Accounting, ConcentratedAccounting, RenyiAccounting

ACCOUNTINGS: list[tuple[Any, Accounting]] = [
    ("gdp", GAUSSIAN),
    ({"kind": "zcdp"}, ConcentratedAccounting()),
    ({"kind": "rdp", "order": 32}, RenyiAccounting(order=32)),
    ({"kind": "pure"}, PURE),
]
NAMES = [accounting.name for _, accounting in ACCOUNTINGS]


def registered_under(stated: Any) -> dict[str, Any]:
    """The part of a registration that states an accounting: with epsilon 1, and a delta unless it is pure."""
    is_pure = stated == {"kind": "pure"}
    return {"accounting": stated, "guarantee": {"epsilon": "1"} if is_pure else {"epsilon": "1", "delta": "1e-5"}}
