"""Steps of one fit stand together in a history; whatever else differs is another line."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sparing import ReleaseRow
from sparing._cli_tables import history_table, steps_table
from sparing._folded import folded

AT = datetime(2026, 11, 27, tzinfo=UTC)


def row(number: int, select: dict[str, Any], *, dataset: str = "club", **more: Any) -> ReleaseRow:
    """A release of one select item."""
    return ReleaseRow(
        id=f"id-{number}",
        dataset=dataset,
        sequence=number,
        query={"version": 1, "select": [select], "noise": {"sigma": 3}} | more,
        sigma=3.0,
        dimension=2,
        worst_case_rho=Decimal("0.01"),
        released_at=AT,
        epoch=1,
        words="logistic gradient of member by 2 features",
    )


def step(number: int, *, loss: str = "logistic", **more: Any) -> ReleaseRow:
    """A step at parameters of its own, in a list or by hash."""
    given: Any = [number, 0] if number % 2 else {"sha256": f"{number:064}", "shape": [2]}
    return row(number, {"gradient": {"loss": loss, "parameters": given}}, **more)


def test_steps_in_a_row_are_together() -> None:
    """Steps of one model, dataset, noise and condition; a count between them ends the row, and counts stay apart."""
    count: dict[str, Any] = {"count": {}}
    listed = [
        *(step(9), step(8), step(7)),
        *(row(6, count), row(5, count)),
        step(4, loss="squared"),
        step(3, where={"not": {}}),
        step(2, dataset="other"),
        *(step(1, dataset="other"), step(0)),
    ]
    groups = [[each.sequence for each in group] for group in folded(listed)]
    assert groups == [[9, 8, 7], [6], [5], [4], [3], [2, 1], [0]]
    assert folded([]) == []


def test_a_line_says_what_its_steps_cost_together() -> None:
    """A repeated answer costs once; with each step by itself there is a line for each."""
    lines = history_table([step(3), step(2), step(2), step(1)]).splitlines()
    assert len(lines) == 2
    assert "3 steps" not in lines[1]
    assert "4 steps: logistic gradient" in lines[1]
    assert " 0.03 " in lines[1]
    assert len(steps_table([step(3), step(2), step(1)]).splitlines()) == 4
