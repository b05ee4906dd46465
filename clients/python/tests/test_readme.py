"""The examples of the README run."""

import re
from pathlib import Path
from typing import Any

import httpx

import sparing

README = Path(__file__).parents[1] / "README.md"


def test_the_quickstart_runs(script: Any, answer: Any, monkeypatch: Any, capsys: Any) -> None:
    """Executed as printed, against a fake service."""
    script.steps = [
        httpx.Response(
            200, json=answer | {"values": [41.5, 900.0], "labels": [{"select": "count"}, {"select": "sum(spend)"}]}
        )
    ]
    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: script(request))
    quickstart = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[0]

    exec(compile(quickstart, "README.md", "exec"), {})  # noqa: S102 - our own README

    assert capsys.readouterr().out == "count: 42 ± 39\nsum(spend): 900 ± 39\n"


def test_the_query_step_by_step_runs(script: Any, answer: Any, monkeypatch: Any, capsys: Any) -> None:
    """Executed as printed, against a fake service."""
    preview = {"dimension": 1, "grid": 1, "sigma": 20, "half_width_95": 39, "worst_case_rho": "0.1"}
    labels = [{"country": "NO", "joined": "2026", "select": "count"}]
    script.steps = [
        httpx.Response(200, json=preview | {"worst_case_share": 0.5}),
        httpx.Response(200, json=answer | {"labels": labels}),
    ]
    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: script(request))
    first, second = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[:2]
    imports = first.splitlines()[0]

    exec(compile(f"{imports}\n{second}", "README.md", "exec"), {})  # noqa: S102 - our own README

    assert capsys.readouterr().out == ("0.5\nAnswer(41.5 ± 39.2, dimension=1, id='0190-a')\nNO 2026 2.5 80.5\n")


def test_every_exception_of_the_tree_is_in_the_readme() -> None:
    """A name that is not documented is not public."""
    text = README.read_text(encoding="utf-8")

    assert [name for name in sparing.__all__ if name.endswith("Error") and name not in text] == []
