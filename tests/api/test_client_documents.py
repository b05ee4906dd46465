"""The Python of the client's documents runs against the service, and no document has Python that no test runs."""

import gzip
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from sqlalchemy.dialects import registry

import sparing_demo
from sparing import Client, SparingError
from tests.api.documented import Reader
from tests.api.world import build_world

ROOT = Path(__file__).parents[2]
README = ROOT / "clients/python/README.md"
SQL = ROOT / "docs/sql.md"
DEMO = ROOT / "clients/demo/README.md"
RUN_ELSEWHERE = {
    "README.md": "test_readme.py",
    "clients/audit/README.md": "test_adversary.py",
    "docs/choosing-parameters.md": "test_choosing_parameters.py",
    "docs/first-hour.md": "test_first_hour.py",
    "docs/learning.md": "test_learning_page.py",
    "docs/local-model.md": "test_local_model_document.py",
    "docs/post-processing.md": "test_post_processing.py",
    "docs/query-language.md": "test_query_bodies.py",
    "docs/your-data.md": "test_your_data.py",
}
"""The test module that runs the Python of a page."""


def python_of(path: Path) -> list[str]:
    """The blocks of Python on a page, each moved to the margin."""
    text = path.read_text(encoding="utf-8")
    return [
        textwrap.dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    ]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reader:
    """A reader in a folder of its own, with a curator's key; both clients are led to the service in memory."""
    world = build_world()
    made = Reader(world=world, monkeypatch=monkeypatch)
    transport = httpx.ASGITransport(world.app)
    monkeypatch.setattr(
        httpx.AsyncHTTPTransport, "handle_async_request", lambda _, request: transport.handle_async_request(request)
    )
    monkeypatch.setenv("SPARING_API_KEY", world.keys["curator"])
    monkeypatch.chdir(tmp_path)
    return made


def run(block: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a block, and give back the names."""
    exec(compile(block, "page", "exec"), names)  # noqa: S102 - our own page
    return names


def test_the_clients_readme_runs_from_its_first_block_to_its_last(
    reader: Reader, capsys: pytest.CaptureFixture[str]
) -> None:
    """The curator's blocks first, since the others ask the dataset that they make."""
    quickstart, stepwise, *others = python_of(README)
    by_item, curator, frame, many, left, auditor, awaited, options, keeping, own_tests = others
    people = [f"p{n},{n + 20},{('NO', 'SE')[n % 2]},{n}.5,2024-01-{n % 28 + 1:02}" for n in range(60)]
    table = "\n".join(["person_id,age,country,spend,joined", *people]) + "\n"
    Path("people.csv.gz").write_bytes(gzip.compress(table.encode()))
    names: dict[str, Any] = {**reader.names, "Client": Client}
    run(curator, names)
    made = capsys.readouterr().out.splitlines()
    names["frame"] = pd.DataFrame(
        {
            "Customer No": ["q1"],
            "Remarks": ["x"],
            "age": [30],
            "country": ["NO"],
            "spend": [9.0],
            "joined": ["2024-05-01"],
        }
    )
    run(f"with Client(api_key=curator_key) as curator:\n{textwrap.indent(frame, '    ')}", names)
    assert names["report"].rows == 1
    for month in ("june", "july"):
        rows = f"person_id,age,country,spend,joined\n{month},40,NO,1.5,2024-06-01\n"
        Path(f"{month}.csv.gz").write_bytes(gzip.compress(rows.encode()))
    run(f"with Client(api_key=curator_key) as curator:\n{textwrap.indent(many, '    ')}", names)
    assert names["report"].individuals == 2
    run(f"with Client(api_key=curator_key) as curator:\n{textwrap.indent(left, '    ')}", names)
    assert (names["forecast"].touched, names["forecast"].active) == (63, 63)
    assert Path("budgets.csv").read_text(encoding="utf-8").count("\n") == 64
    reader.monkeypatch.setenv("SPARING_API_KEY", made[0])
    assert len(made) == 1 + 60 + 1  # a key, the budgets and the acts
    capsys.readouterr()

    run(quickstart, names)
    run(stepwise, names)
    numbers = r"count: -?\d+ ± \d+\nsum\(spend\): -?\d+ ± \d+\n"
    assert re.fullmatch(numbers + r"0\.\d+\nAnswer\([^\n]+\n(NO|SE)[^Z]*", capsys.readouterr().out)
    run(by_item, names)
    assert (
        capsys.readouterr().out.count("\n") == 3 + 6 + 5
    )  # three answers, three numbers of two groups, and a table with its size
    run(auditor.replace("<an auditor's key>", reader.world.keys["auditor"]), names)
    assert re.fullmatch(r"7 \(\) [0-9a-f]{64}\nNone\n", capsys.readouterr().out)
    run(awaited, names)
    assert len(capsys.readouterr().out.splitlines()) == 3
    run(options, names | {"client": Client()})
    kept = run(keeping, names)["client"].queries.ask(dataset="shop", sigma=20)
    assert kept.idempotency_key in Path("keys.jsonl").read_text(encoding="utf-8")
    assert reader.warnings == []
    found = run(own_tests, {})
    for test in [name for name in found if name.startswith("test_")]:
        found[test]()


@pytest.mark.filterwarnings("ignore:This answer was released")
def test_the_queries_in_sql_run(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    """On a dataset with the columns that they name."""
    tables = {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {
                "age": {"type": "integer", "lower": 0, "upper": 120},
                "town": {"type": "category", "categories": ["Oslo", "Bergen"]},
            },
        },
        "buys": {"kind": "events", "key": "id", "columns": {"price": {"type": "real", "lower": 0, "upper": 900}}},
    }
    with Client() as curator:
        curator.datasets.create(name="shop", rho=1, capacity=100, tables=tables)
    reader.monkeypatch.setenv("SPARING_API_KEY", reader.world.keys["analyst"])
    block, by_item, tools = python_of(SQL)
    assert len(run(block, {})["answer"].values) == 2
    assert float(capsys.readouterr().out) > 0
    run(by_item, {"Client": Client})
    registry.register("sparing", "sparing._sqlalchemy", "SparingDialect")  # as its entry point does where installed
    run(tools, {})
    towns = r"(Oslo|Bergen)"
    rows = r"{0}: -?\d+ ± \d+\n{0}: -?\d+ ± \d+\n +town +n +n_half_width\n0 +Oslo [^\n]+\n1 +Bergen [^\n]+\n"
    assert re.fullmatch(rows.format(towns), capsys.readouterr().out)
    assert reader.warnings == []


def test_the_demo_is_called_as_its_readme_calls_it() -> None:
    """Its run is another test's; here the call fits, and what is printed is there."""
    (block,) = python_of(DEMO)
    called = re.search(r"run_demo\((.*)\)\n", block)
    assert called is not None
    arguments = re.findall(r"(\w+)=", called[1])
    inspect.signature(sparing_demo.run_demo).bind(**dict.fromkeys(arguments))
    with pytest.raises((SparingError, ValueError)):
        run(block.replace('"http://127.0.0.1:8000"', '"http://127.0.0.1:9"'), {})


def test_no_document_has_python_that_no_test_runs() -> None:
    """A page with Python is run here, or by the test of its name."""
    pages = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md") if not {".venv", "build"} & set(path.parts)}
    with_python = {page for page in pages if python_of(ROOT / page)}
    assert with_python == RUN_ELSEWHERE.keys() | {str(path.relative_to(ROOT)) for path in (README, SQL, DEMO)}
    tests = {path.name: path.read_text(encoding="utf-8") for path in ROOT.rglob("tests/**/test_*.py")}
    assert [page for page, name in RUN_ELSEWHERE.items() if Path(page).name not in tests[name]] == []
