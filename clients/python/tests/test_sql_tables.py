"""Tables of answers: columns as they are selected, rows in the order that is asked for, and the query unchanged."""

import datetime as dt
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import Average, Client, Interval, SQLError, connect
from sparing._sql import question_of
from sparing._sql_tables import Table, table_of, table_query
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "town": {"type": "category", "categories": ["Oslo", "Bergen, N"]},
            "joined": {"type": "date", "lower": "2025-12-31", "upper": "2026-01-01"},
            "at": {"type": "datetime", "lower": "2026-01-01T00:00:00", "upper": "2026-01-01T00:00:01"},
            "member": {"type": "boolean"},
        },
    },
    "buys": {
        "kind": "events",
        "key": "id",
        "rows_per_individual": 2,
        "columns": {"item": {"type": "category", "size": 3}},
    },
}
PEOPLE = [
    {"id": number, "age": 10 * number, "town": ["Oslo", "Bergen, N"][number < 5], "member": number == 3}
    | {"joined": "2026-01-01", "at": "2026-01-01T00:00:01"}
    for number in range(7)
]
BUYS = [{"id": number, "item": number % 2} for number in range(7)]


@pytest.fixture(scope="module")
def client() -> Any:
    """A client of a fake service with seven people: two in Oslo, five in Bergen."""
    with FakeService() as fake:
        fake.add_dataset("shop", TABLES, rows={"people": PEOPLE, "buys": BUYS}, rho=10**6)
        yield fake.client()


def asked(client: Client, text: str, *, has_half_widths: bool = False, **noise: Any) -> Table:
    """The table of a query, with little noise unless it is stated."""
    query = table_query(text)
    answer = connect(dataset="shop", client=client, **(noise or {"rho": 1})).ask(query, None)
    return table_of(answer, query, has_half_widths=has_half_widths)


FROM = "FROM people GROUP BY"
TOWN = f"{FROM} town"
TABLE: list[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]] = [
    ("SELECT COUNT(*) FROM people", ("count",), [(7,)]),
    (f"SELECT town, COUNT(*) {TOWN}", ("town", "count"), [("Oslo", 2), ("Bergen, N", 5)]),
    (f"SELECT COUNT(*), town {TOWN}", ("count", "town"), [(2, "Oslo"), (5, "Bergen, N")]),
    (f"SELECT COUNT(*) {TOWN}", ("town", "count"), [("Oslo", 2), ("Bergen, N", 5)]),
    (
        f"SELECT town AS t, town, COUNT(*) AS n {TOWN}",
        ("t", "town", "n"),
        [("Oslo",) * 2 + (2,), ("Bergen, N",) * 2 + (5,)],
    ),
    (f'SELECT town t, COUNT(*) "n of \'em" {FROM} t', ("t", "n of 'em"), [("Oslo", 2), ("Bergen, N", 5)]),
    (f"SELECT town, COUNT(*) {FROM} 1", ("town", "count"), [("Oslo", 2), ("Bergen, N", 5)]),
    *(
        (f"SELECT town, COUNT(*) AS N {TOWN} HAVING {having} ORDER BY n", ("town", "N"), kept)
        for having, kept in (
            ("COUNT(*) > 3", [("Bergen, N", 5)]),
            ("n BETWEEN 1 AND 3 OR NOT n > -1", [("Oslo", 2)]),
            ("(2) <= N AND COUNT(*) <> 5", [("Oslo", 2)]),
            ("n > 9", []),
        )
    ),
    (f"SELECT COUNT(*) AS n, SUM(age) AS n {TOWN}", ("town", "n", "n_"), [("Oslo", 2, 110), ("Bergen, N", 5, 100)]),
    (
        "SELECT p.town, COUNT(1) FROM people AS p GROUP BY People.town",
        ("town", "count"),
        [("Oslo", 2), ("Bergen, N", 5)],
    ),
    (
        f"SELECT COUNT(*) AS a, SUM(age) AS b, COUNT(*) AS c {TOWN}",
        ("town", "a", "b", "c"),
        [("Oslo", 2, 110, 2), ("Bergen, N", 5, 100, 5)],
    ),
    (
        f"SELECT BINS(age, 0, 9, 50, 120) AS age, COUNT(*) {FROM} age",
        ("age", "count"),
        [("[0, 9)", 1), ("[9, 50)", 4), ("[50, 120]", 2)],
    ),
    (
        f"SELECT joined, COUNT(*) {FROM} joined",
        ("joined", "count"),
        [(dt.date(2025, 12, 31), 0), (dt.date(2026, 1, 1), 7)],
    ),
    (f"SELECT YEAR(joined) AS y, COUNT(*) {FROM} y", ("y", "count"), [(2025, 0), (2026, 7)]),
    (f"SELECT member, COUNT(*) {FROM} member", ("member", "count"), [(False, 6), (True, 1)]),
    ("SELECT HISTOGRAM(member) FROM people", ("member", "histogram(member)"), [(False, 6), (True, 1)]),
    (
        f"SELECT HISTOGRAM(member) AS n, town {TOWN} ORDER BY n DESC LIMIT 2",
        ("member", "n", "town"),
        [(False, 4, "Bergen, N"), (False, 2, "Oslo")],
    ),
    ("SELECT people.town, COUNT(*) FROM buys GROUP BY people.town", ("town", "count"), [("Oslo", 2), ("Bergen, N", 5)]),
    ("SELECT item, COUNT(*) FROM buys GROUP BY item", ("item", "count"), [(0, 4), (1, 3), (2, 0)]),
    (f"SELECT town, COUNT(*) {TOWN} ORDER BY town", ("town", "count"), [("Bergen, N", 5), ("Oslo", 2)]),
    (f"SELECT town, COUNT(*) {TOWN} ORDER BY COUNT(*) DESC", ("town", "count"), [("Bergen, N", 5), ("Oslo", 2)]),
    (f"SELECT town, COUNT(*) {TOWN} ORDER BY 2 DESC, 1", ("town", "count"), [("Bergen, N", 5), ("Oslo", 2)]),
    (f"SELECT town, COUNT(*) AS n {TOWN} ORDER BY n DESC LIMIT 1", ("town", "n"), [("Bergen, N", 5)]),
    (f"SELECT town, COUNT(*) {TOWN} LIMIT 5 OFFSET 1", ("town", "count"), [("Bergen, N", 5)]),
    (f"SELECT town, COUNT(*) {TOWN} LIMIT 0", ("town", "count"), []),
    (
        f"SELECT BINS(age, 0, 9, 100, 120) AS a, COUNT(*) {FROM} member, a ORDER BY a DESC, member DESC LIMIT 3",
        ("member", "a", "count"),
        [(True, "[100, 120]", 0), (False, "[100, 120]", 0), (True, "[9, 100)", 1)],
    ),
]


@pytest.mark.parametrize(("text", "names", "rows"), TABLE, ids=[text for text, _, _ in TABLE])
def test_an_answer_is_arranged_as_its_text_says(
    client: Client, text: str, names: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> None:
    """Aliases, repeated items, places, order, limit; bins in the order of their edges."""
    found = asked(client, text)
    assert (found.names, len(found.rows)) == (names, len(rows))
    for row, expected in zip(found.rows, rows, strict=True):
        assert row == pytest.approx(expected)


@pytest.mark.parametrize(
    ("unit", "first"),
    [
        ("day", dt.date(2025, 12, 31)),
        ("week", dt.date(2025, 12, 29)),
        ("month", dt.date(2025, 12, 1)),
        ("quarter", dt.date(2025, 10, 1)),
        ("year", dt.date(2025, 1, 1)),
    ],
)
def test_a_truncated_day_is_the_first_of_its_time(client: Client, unit: str, first: dt.date) -> None:
    """DATE_TRUNC has it so in SQL."""
    found = asked(client, f"SELECT DATE_TRUNC('{unit}', joined) AS since, COUNT(*) {FROM} since")
    assert (found.names, found.rows[0][0]) == (("since", "count"), first)


def test_parts_of_a_time_are_numbers(client: Client) -> None:
    """And no days."""
    hours = asked(client, "SELECT EXTRACT(HOUR FROM at), COUNT(*) FROM people GROUP BY EXTRACT(HOUR FROM at)")
    days = asked(client, "SELECT EXTRACT(ISODOW FROM joined), COUNT(*) FROM people GROUP BY 1")
    assert [row[0] for row in hours.rows] == list(range(24))
    assert [row[0] for row in days.rows] == list(range(1, 8))


def test_a_number_has_its_half_width_beside_it(client: Client) -> None:
    """Under its own name, also where items are repeated or ordered."""
    found = asked(client, f"SELECT SUM(age) AS a, town, COUNT(*) {TOWN} ORDER BY 1", has_half_widths=True)
    summed, counted = client.sql("SELECT SUM(age), COUNT(*) FROM people", dataset="shop", rho=1).half_widths

    assert found.names == ("a", "a_half_width", "town", "count", "count_half_width")
    assert found.rows[0] == pytest.approx((100, summed, "Bergen, N", 5, counted))


def test_averages_are_columns_with_the_ends_of_their_intervals(client: Client) -> None:
    """A count beside one has a half width; one without a value is None, ordered as the largest."""
    query = table_query(f"SELECT town, AVG(age) AS a, COUNT(*) {TOWN} ORDER BY a DESC")
    answer = client.sql(f"SELECT COUNT(*) {TOWN}", dataset="shop", sigma=600)
    averages = [
        Average(
            label={"town": town, "select": item},
            value=value,
            interval_at=lambda confidence, value=value: Interval(low=value - 1, high=value + 2 * confidence),  # type: ignore[misc]
        )
        for town, *values in (("Oslo", 55.0, 2.0), ("Bergen, N", math.nan, 5.0))
        for item, value in zip(("mean(age)", "count"), values, strict=True)
    ]
    found = table_of(replace(answer, averages=tuple(averages)), query, has_half_widths=True)

    assert found.names == ("town", "a", "a_low", "a_high", "count", "count_half_width")
    assert found.rows[0][:2] == ("Bergen, N", None)
    assert found.rows[1] == ("Oslo", 55, 54, 56.9, 2, averages[1].half_width())
    assert found.samples[1] == 55


AVERAGES: list[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]] = [
    (
        f"SELECT town, AVG(age) AS a, COUNT(*) {TOWN} ORDER BY a",
        ("town", "a", "count"),
        [("Bergen, N", 20, 5), ("Oslo", 55, 2)],
    ),
    (f"SELECT VARIANCE(age), town {TOWN}", ("variance(age)", "town"), [(25, "Oslo"), (200, "Bergen, N")]),
    ("SELECT STDDEV(age), AVG(age) FROM people", ("stddev(age)", "mean(age)"), [(20, 30)]),
    (f"SELECT MEDIAN(age) AS m {TOWN}", ("town", "m"), [("Oslo", 55), ("Bergen, N", 20)]),
    ("SELECT APPROX_QUANTILE(age, 0.25) AS q, MEDIAN(age) FROM people", ("q", "quantile(age, 0.5)"), [(15, 30)]),
]


@pytest.mark.parametrize(("text", "names", "rows"), AVERAGES, ids=[text for text, _, _ in AVERAGES])
def test_averages_are_columns(client: Client, text: str, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """A quantile is known to the width of its bins, of which there are 64."""
    found = asked(client, text, rho=1)
    assert found.names == names
    assert len(found.rows) == len(rows)
    for row, expected in zip(found.rows, rows, strict=True):
        for value, number in zip(row, expected, strict=True):
            assert value == (
                number
                if isinstance(number, str)
                else pytest.approx(number, abs=10 if "ile" in text or "MED" in text else 1e-5)
            )


REFUSED = [
    ("INSERT INTO people VALUES (1)", "this service answers SELECT, and nothing else"),
    ("DROP TABLE people", "this service answers SELECT, and nothing else"),
    ("SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people", "this service answers SELECT, and nothing else"),
    ("SELECT COUNT(*), HISTOGRAM(member) FROM people", "HISTOGRAM beside other items is no table"),
    (f"SELECT COUNT(*) {TOWN} ORDER BY age", "ORDER BY takes what is selected or grouped by, not age"),
    (f"SELECT COUNT(*) {TOWN} ORDER BY 2", "2 is no place among the 1 selected columns"),
    (f"SELECT COUNT(*) {FROM} 0", "0 is no place among the 1 selected columns"),
    (f"SELECT COUNT(*) {TOWN} LIMIT -1", "LIMIT -1 must be a whole number"),
    (f"SELECT COUNT(*) {TOWN} LIMIT 1 + 1", r"LIMIT 1 \+ 1 must be a whole number"),
    (f"SELECT COUNT(*) {TOWN} OFFSET 'x'", "OFFSET 'x' must be a whole number"),
    (f"SELECT COUNT(*) {FROM} 1", "is not supported"),
    (f"SELECT DISTINCT town, COUNT(*) {TOWN}", "is not supported"),
    (f"SELECT COUNT(*) {TOWN} FETCH FIRST 1 ROW ONLY", "is not supported"),
    (f"SELECT COUNT(*) {TOWN} HAVING SUM(age) > 1", "HAVING takes what is selected"),
    (f"SELECT COUNT(*) {TOWN} HAVING COUNT(*) IN (1)", "HAVING takes comparisons"),
    (f"SELECT COUNT(*) {TOWN} HAVING COUNT(*) > 'a'", "'a' is no number"),
    (f"SELECT COUNT(*) {TOWN} HAVING town = 'Oslo'", "conditions on columns are written in WHERE"),
    ("SELECT town AS t FROM people", "neither counted nor in GROUP BY"),
    ("SELECT COUNT(*) FROM people LIMIT 1 FOR UPDATE", "is not supported"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_a_text_beyond_the_dialect_is_refused(text: str, said: str) -> None:
    """Before anything is sent."""
    with pytest.raises(SQLError, match=said):
        table_query(text)


NAMES = st.sampled_from(["age", "town", "p.member"])


@given(keys=st.lists(NAMES, max_size=3, unique=True), limit=st.none() | st.integers(0, 99), picked=st.data())
def test_the_arrangement_is_no_part_of_the_query(keys: list[str], limit: int | None, picked: st.DataObject) -> None:
    """Aliases, ORDER BY, LIMIT and OFFSET leave the document that is sent, and so its cost, as it was."""
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    plain = " ".join(["SELECT", ", ".join([*keys, "COUNT(*)", "SUM(age)"]), "FROM p", grouped])
    order = picked.draw(st.lists(st.sampled_from([*keys, "n", "SUM(age)", "1"]), min_size=1, max_size=3))
    text = plain.replace("COUNT(*)", "COUNT(*) AS n") + f" ORDER BY {', '.join(order)} DESC"
    query = table_query(text if limit is None else f"{text} LIMIT {limit} OFFSET 2")
    items, question = question_of(plain)

    assert query.items == items
    assert query.question == question
    assert (query.limit, query.offset) == (limit, 0 if limit is None else 2)
    assert len(query.outputs) == len(keys) + 2
