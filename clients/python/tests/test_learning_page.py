"""The page docs/learning.md is right: its example runs and prints what it shows."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparing
from sparing.testing import FakeService

PAGE = (Path(__file__).parents[3] / "docs" / "learning.md").read_text(encoding="utf-8")
COUNT = 20_000
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "spend": {"type": "real", "lower": 0, "upper": 500},
            "country": {"type": "category", "categories": ["NO", "SE"]},
            "member": {"type": "boolean"},
        },
    }
}


def people() -> list[dict[str, Any]]:
    """The older and those that spend more are members more often."""
    rng = np.random.default_rng(1)
    age, spend = rng.integers(18, 90, COUNT), rng.uniform(0, 500, COUNT).round(2)
    is_abroad = rng.random(COUNT) < 0.4
    argument = 2 * (age - 60) / 60 + 1.5 * (spend - 250) / 250 - 0.8 * is_abroad
    is_member = rng.random(COUNT) < 1 / (1 + np.exp(-argument))
    columns = age.tolist(), spend.tolist(), np.where(is_abroad, "SE", "NO").tolist(), is_member.tolist()
    names = ("age", "spend", "country", "member")
    return [
        {"person_id": number, **dict(zip(names, row, strict=True))}
        for number, row in enumerate(zip(*columns, strict=True))
    ]


def test_the_examples_print_what_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise, the same each time."""
    blocks, shown = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) for kind in ("python", "text"))
    with FakeService(noise=True, seed=1) as fake, contextlib.redirect_stdout(io.StringIO()) as printed:
        fake.add_dataset("shop", TABLES, rows={"people": people()}, epsilon=1, delta="1e-5", capacity=COUNT)
        monkeypatch.setattr(sparing, "Client", fake.client)
        exec(compile("".join(blocks), "learning.md", "exec"), {})  # noqa: S102 - our own page
    assert printed.getvalue() == "".join(shown)
