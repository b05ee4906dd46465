"""The rows of a page's table of admitted steps, for two tests."""

import re
from pathlib import Path


def cells_of(page: str, workload: str) -> list[int]:
    """The steps by each accountant that a page of docs states for a workload."""
    text = (Path(__file__).parents[3] / "docs" / page).read_text(encoding="utf-8")
    (cells,) = re.findall(rf"^\| {re.escape(workload)} \|[^|]*\|(.+)\|$", text, re.MULTILINE)
    return [int(cell.replace(",", "")) for cell in str(cells).split("|")]
