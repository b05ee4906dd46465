"""The blocks of docs/local-model.md run, in order, over one folder."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "local-model.md").read_text(encoding="utf-8")


def test_a_thousand_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page shows the lines that are printed. The sums are within five standard errors.

    No device has spent more than its budget, and what one of them has left is less than another report's charge.
    """
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shown = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"folder": tmp_path}
    for block in code:
        exec(compile(block, "docs/local-model.md", "exec"), names)  # noqa: S102 - the page's own blocks
    assert capsys.readouterr().out == "".join(shown)
    people = names["found"].sums / 0.7
    assert abs(people - [500, 100]).max() < 5 * names["found"].standard_error / 0.7
    spent = {each.spent_units for each in names["devices"][:200]}
    assert max(spent) <= 2**38 < max(spent) + 0.06125 * 2**40
