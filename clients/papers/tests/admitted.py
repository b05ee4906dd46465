"""The rows of the table of admitted steps in docs/natural-filters.md, for two tests."""

import re
from pathlib import Path


def cells_of(workload: str) -> list[int]:
    """The steps by each accountant that the page states for a workload."""
    text = (Path(__file__).parents[3] / "docs/natural-filters.md").read_text(encoding="utf-8")
    (cells,) = re.findall(rf"^\| {re.escape(workload)} \|[^|]*\|(.+)\|$", text, re.MULTILINE)
    return [int(cell.replace(",", "")) for cell in str(cells).split("|")]
