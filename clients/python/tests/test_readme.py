"""The examples of the README run."""

import ast
import re
import textwrap
from pathlib import Path
from typing import Any

import httpx

import sparing
from sparing.testing import FakeService

README = Path(__file__).parents[1] / "README.md"


def test_the_quickstart_runs(script: Any, answer: Any, monkeypatch: Any, capsys: Any) -> None:
    """Executed as printed, against a fake service."""
    items = [{"select": "count", "offset": 0, "size": 1}, {"select": "sum(spend)", "offset": 1, "size": 1}]
    precisions = {"sigma": [20.0, 2000.0], "grid": [0.5, 0.25], "half_width_95": [39.0, 3920.0]}
    labels = [{"select": item["select"]} for item in items]
    both = {"values": [41.5, 900.0], "labels": labels, "axes": [{"select": items}], "dimension": 2} | precisions
    script.steps = [httpx.Response(200, json=answer | both)]
    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: script(request))
    quickstart = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[0]

    exec(compile(quickstart, "README.md", "exec"), {})  # noqa: S102 - our own README

    assert capsys.readouterr().out == "count: 42 ± 39\nsum(spend): 900 ± 3920\n"


def test_the_quickstart_counts_everybody_on_the_schema_of_the_page(monkeypatch: Any, capsys: Any) -> None:
    """The schema as registered there, and people who spend up to its bound: the precision leaves out nobody."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (registered,) = [
        {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
        for block in blocks
        for node in ast.walk(ast.parse(textwrap.dedent(block)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "curator.datasets.create"
    ]
    rows = [{"person_id": n, "age": 40 + n % 50, "country": "NO", "spend": n % 501} for n in range(2004)]
    with FakeService() as fake:
        fake.add_dataset(registered.pop("name"), registered.pop("tables"), rows={"people": rows}, **registered)
        monkeypatch.setattr(sparing, "Client", fake.client)
        exec(compile(blocks[0], "README.md", "exec"), {})  # noqa: S102 - our own README
        assert re.findall(r": (\d+) ±", capsys.readouterr().out) == ["2004", str(4 * sum(range(501)))]


def test_the_query_step_by_step_runs(script: Any, answer: Any, monkeypatch: Any, capsys: Any) -> None:
    """Executed as printed, against a fake service."""
    preview = {"dimension": 1, "grid": 1, "sigma": 20, "half_width_95": 39, "worst_case_rho": "0.1"}
    groups = [{"column": name, "size": 1} for name in ("country", "joined")]
    labels = [{"country": "NO", "joined": "2026", "select": "count"}]
    script.steps = [
        httpx.Response(200, json=preview | {"worst_case_share": 0.5}),
        httpx.Response(200, json=answer | {"labels": labels, "axes": [*groups, *answer["axes"]]}),
    ]
    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: script(request))
    first, second = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[:2]
    imports = first.splitlines()[0]

    exec(compile(f"{imports}\n{second}", "README.md", "exec"), {})  # noqa: S102 - our own README

    assert capsys.readouterr().out == ("0.5\nAnswer(42 ± 39, dimension=1, id='0190-a')\nNO 2026 2.5 80.5\n")


def test_every_exception_of_the_tree_is_in_the_readme() -> None:
    """A name that is not documented is not public."""
    text = README.read_text(encoding="utf-8")

    assert [name for name in sparing.__all__ if name.endswith("Error") and name not in text] == []
