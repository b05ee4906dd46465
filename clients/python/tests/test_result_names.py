"""Names of results beside names of data, in each form in which an answer is shown."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import Answer, Client, connect
from sparing._cli import main
from sparing._result_names import ResultNames
from sparing.testing import FakeService

NAMES = ["value", "value_", "half_width_95", "low_95", "high_95", "count", "count_half_width", "n", "town"]


@given(st.lists(st.sampled_from(["value", "value_", "low_95", "a"])), st.lists(st.sampled_from(["value", "low_95"])))
def test_no_two_columns_have_one_name(of_data: list[str], results: list[str]) -> None:
    """Names of data are kept, and those of results too where they are free."""
    names = ResultNames(of_data)
    given = [names.free(name) for name in results]
    assert len({*of_data, *given}) == len({*of_data}) + len(given)
    assert given[:1] == results[:1] or results[0] in of_data


def by_frame(answer: Answer) -> list[dict[str, Any]]:
    """The columns of each library."""
    frame, arrow = answer.to_pandas(), answer.to_arrow()
    return [
        {name: [*frame[name]] for name in frame.columns},
        answer.to_polars().to_dict(as_series=False),
        dict(zip(arrow.column_names, (column.to_pylist() for column in arrow.columns), strict=True)),
    ]


def mean_of(client: Client, name: str) -> Answer:
    """An average beside a group."""
    return client.dataset("d").query().group_by(name).mean("number").noise(rho=1).run()


ASKED: dict[str, Callable[[Client, str], Answer]] = {
    "counts": lambda client, name: client.dataset("d").query().group_by(name).count().noise(sigma=0.5).run(),
    "averages": mean_of,
}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """The name of a column of the data."""
    return str(request.param)


@pytest.fixture
def fake(name: str) -> Any:
    """A service with two groups in such a column."""
    columns = {
        name: {"type": "category", "categories": ["x", "y"]},
        "number": {"type": "integer", "lower": 0, "upper": 9},
    }
    rows = [{"id": key, name: group, "number": 3} for key, group in (("a", "x"), ("b", "x"), ("c", "y"))]
    tables = {"people": {"kind": "individuals", "key": "id", "columns": columns}}
    with FakeService() as service:
        service.add_dataset("d", tables, rows={"people": rows}, rho=10**6)
        yield service


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_frame_has_the_groups_and_the_numbers(fake: FakeService, name: str, asked: Any) -> None:
    """Each library has as many columns as there are names of data and of results."""
    answer = asked(fake.client(), name)
    results = ["value", "half_width_95", *(["low_95", "high_95"] if answer.averages else []), "coverage_certified"]
    for columns in by_frame(answer):
        assert columns[name] == ["x", "y"]
        assert len(columns) == len(results) + 2
        named = ResultNames([name])
        assert set(columns) == {name, "select", *(named.free(each) for each in results)}
        assert columns[ResultNames([name]).free("value")] == list(answer.measured()[1])


@pytest.mark.filterwarnings("ignore:The interval is the whole domain")
@pytest.mark.parametrize("item", ["COUNT(*)", "AVG(number)", "COUNT(*) AS n"])
def test_a_table_of_sql_has_each_name_once(fake: FakeService, name: str, item: str) -> None:
    """A key keeps its name, and an alias does where no column before it has it."""
    cursor = connect(dataset="d", client=fake.client(), rho=1).cursor()
    rows = cursor.execute(f'SELECT "{name}", {item} FROM people GROUP BY 1').fetchall()  # noqa: S608 - names of ours
    names = [column for column, *_ in cursor.description or ()]
    assert (names[0], [row[0] for row in rows]) == (name, ["x", "y"])
    assert len({*names}) == len(names)


def test_the_command_line_has_each_name_once(fake: FakeService, name: str) -> None:
    """In the head of its table; as JSON, labels are apart from results."""
    out = io.StringIO()
    words = ["query", "d", "--sql", f"SELECT COUNT(*) FROM people GROUP BY {name}", "--sigma", "1"]  # noqa: S608 - as above
    environ = {"SPARING_URL": fake.url, "SPARING_API_KEY": fake.api_key}
    assert main(words, environ=environ, out=out, transport=fake.transport) == 0
    head = out.getvalue().splitlines()[0].split("  ")
    shown = [each.strip() for each in head if each.strip()]
    assert len({*shown}) == len(shown)
    assert name in shown


def test_a_column_may_not_have_the_name_of_the_item() -> None:
    """Labels have it: a registration with it is refused."""
    tables = {"people": {"kind": "individuals", "key": "id", "columns": {"select": {"type": "boolean"}}}}
    with FakeService() as service, pytest.raises(ValueError, match="labels use the word"):
        service.add_dataset("d", tables)


def test_keys_of_two_tables_have_two_names() -> None:
    """The table is left out only where that tells them apart."""
    boolean = {"type": "boolean"}
    tables = {
        "people": {"kind": "individuals", "key": "id", "columns": {"town": boolean}},
        "buys": {"kind": "events", "key": "id", "rows_per_individual": 1, "columns": {"town": boolean}},
    }
    with FakeService() as service:
        rows = {"people": [{"id": "a", "town": True}], "buys": [{"id": "a", "town": False}]}
        service.add_dataset("d", tables, rows=rows, rho=10**6)
        cursor = connect(dataset="d", client=service.client(), rho=1).cursor()
        cursor.execute("SELECT people.town, town, COUNT(*) FROM buys GROUP BY people.town, town")
    assert [name for name, *_ in cursor.description or ()] == ["people.town", "town", "count", "count_half_width"]
