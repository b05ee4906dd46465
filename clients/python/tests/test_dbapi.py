"""PEP 249, part by part, over the fake service; `pandas.read_sql` in the words of the README; every error's class."""

import contextlib
import datetime as dt
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import sparing
from sparing import SparingError, SQLError, dbapi
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 99},
            "town": {"type": "category", "categories": ["Oslo", "L'Aquila", "Ålesund"]},
            "joined": {"type": "date", "lower": "2026-01-01", "upper": "2026-01-02"},
        },
    }
}
ROWS = [{"id": n, "age": n, "town": TOWN, "joined": "2026-01-02"} for n, TOWN in enumerate(["Oslo", "L'Aquila"] * 3)]
BY_TOWN = "SELECT town, COUNT(*) FROM people GROUP BY town"
COUNT = "SELECT COUNT(*) FROM people"


@pytest.fixture
def fake() -> Iterator[FakeService]:
    """Six people in two of three towns."""
    with FakeService() as found:
        found.add_dataset("shop", TABLES, rows={"people": ROWS}, rho=100)
        yield found


@pytest.fixture
def connection(fake: FakeService) -> dbapi.Connection:
    """With little noise, for each query a hundredth of the budget."""
    return sparing.connect(dataset="shop", share=0.01, client=fake.client())


@pytest.fixture
def cursor(connection: dbapi.Connection) -> dbapi.Cursor:
    """A cursor of it."""
    return connection.cursor()


def test_the_module_says_what_it_is() -> None:
    """The level, the threads, the parameters, the constructors and the types that tools look for."""
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert (dbapi.Date(2026, 1, 2), dbapi.Timestamp(2026, 1, 2, 3), dbapi.Binary(b"x")) == (
        dt.date(2026, 1, 2),
        dt.datetime(2026, 1, 2, 3),  # noqa: DTZ001 - as columns have it
        b"x",
    )
    noon = time.mktime((2026, 1, 2, 12, 30, 15, 0, 0, -1))
    assert dbapi.DateFromTicks(noon) == dt.date(2026, 1, 2)
    assert dbapi.TimeFromTicks(noon) == dbapi.Time(12, 30, 15)
    assert dbapi.TimestampFromTicks(noon) == dt.datetime(2026, 1, 2, 12, 30, 15)  # noqa: DTZ001 - as above
    assert len({dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID}) == 5


def test_the_exceptions_are_those_of_the_pep(connection: dbapi.Connection) -> None:
    """In its hierarchy, and attributes of a connection too."""
    below = {dbapi.InterfaceError: dbapi.Error, dbapi.DatabaseError: dbapi.Error} | dict.fromkeys(
        (
            *(dbapi.DataError, dbapi.OperationalError, dbapi.IntegrityError),
            *(dbapi.InternalError, dbapi.ProgrammingError, dbapi.NotSupportedError),
        ),
        dbapi.DatabaseError,
    )
    assert {kind: kind.__bases__ for kind in below} == {kind: (base,) for kind, base in below.items()}
    assert issubclass(dbapi.Warning, Warning)
    assert not issubclass(dbapi.Warning, dbapi.Error)
    for kind in (*below, dbapi.Error, dbapi.Warning):
        assert getattr(connection, kind.__name__) is kind


def test_pandas_reads_an_answer(fake: FakeService, connection: dbapi.Connection) -> None:
    """Groups as columns, and the half width of each number in a column beside it."""
    text = "SELECT town, COUNT(*) AS n FROM people WHERE age >= ? GROUP BY town"
    with pytest.warns(UserWarning, match="pandas only supports SQLAlchemy"):
        frame = pd.read_sql(text, connection, params=(1,))
    answer = fake.client().sql(text.replace("?", "1").replace(" AS n", ""), dataset="shop", share=0.01)

    assert answer.reused
    assert frame.to_dict("list") == {
        "town": ["Oslo", "L'Aquila", "Ålesund"],
        "n": [2, 3, 0],
        "n_half_width": [answer.half_width_95] * 3,
    }


@pytest.mark.filterwarnings("ignore:This answer was released")
def test_a_query_is_asked_once_under_one_key(fake: FakeService, cursor: dbapi.Cursor) -> None:
    """However it is fetched; a lost reply is fetched under the same key, and each execute has its own."""
    cursor.connection.known_tables()
    fake.break_connection(after=True)
    cursor.execute(BY_TOWN)
    assert (len(cursor.fetchall()), cursor.fetchall()) == (3, [])
    _, first, again = fake.requests
    cursor.execute(BY_TOWN, ())

    assert first.idempotency_key == again.idempotency_key != fake.requests[3].idempotency_key
    assert len(fake.requests) == 4
    assert cursor.answer is not None
    assert cursor.answer.reused


def test_an_unknown_outcome_is_fetched_by_its_key(fake: FakeService) -> None:
    """The error of the interface carries it, and the second time charges nothing."""
    cursor = sparing.connect(dataset="shop", share=0.01, reuse=False, client=fake.client(max_retries=0)).cursor()
    cursor.connection.known_tables()
    fake.break_connection(after=True)
    with pytest.raises(dbapi.OperationalError) as caught:
        cursor.execute(COUNT)
    assert (cursor.description, cursor.rowcount) == (None, -1)
    cursor.execute(COUNT, idempotency_key=caught.value.idempotency_key)

    assert cursor.answer is not None
    assert (cursor.answer.sequence, cursor.fetchone()[:1]) == (1, (6,))  # type: ignore[index]
    assert isinstance(caught.value.__cause__, sparing.APIConnectionError)


def test_a_description_names_columns_and_types(cursor: dbapi.Cursor) -> None:
    """Seven things of each column; none before a query."""
    assert (cursor.description, cursor.rowcount, cursor.arraysize) == (None, -1, 1)
    cursor.execute("SELECT town, joined, SUM(age) AS years FROM people GROUP BY town, joined")
    assert cursor.description is not None
    assert [column[:2] for column in cursor.description] == [
        ("town", dbapi.STRING),
        ("joined", dbapi.DATETIME),
        ("years", dbapi.NUMBER),
        ("years_half_width", dbapi.NUMBER),
    ]
    assert {column[2:] for column in cursor.description} == {(None,) * 5}
    assert cursor.rowcount == 6
    cursor.execute(f"{BY_TOWN} LIMIT 0")
    assert [column[1] for column in cursor.description] == [dbapi.STRING, dbapi.NUMBER, dbapi.NUMBER]
    assert cursor.rowcount == 0


@pytest.mark.filterwarnings("ignore:This answer was released")
def test_rows_are_fetched_in_parts(cursor: dbapi.Cursor) -> None:
    """One, some, by default `arraysize`, and the rest, each row once."""
    cursor.execute(f"{BY_TOWN} ORDER BY town")
    assert cursor.fetchone()[0] == "L'Aquila"  # type: ignore[index]
    assert [row[0] for row in cursor.fetchmany()] == ["Oslo"]
    assert [row[0] for row in cursor.fetchmany(5)] == ["Ålesund"]
    assert (cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall()) == (None, [], [])
    cursor.arraysize = 2
    cursor.execute(BY_TOWN)
    assert [len(cursor.fetchmany()), len(cursor.fetchall())] == [2, 1]
    assert [row[0] for row in cursor.execute(BY_TOWN)] == ["Oslo", "L'Aquila", "Ålesund"]
    assert next(cursor.execute(BY_TOWN))[0] == "Oslo"
    with pytest.raises(StopIteration):
        next(cursor.execute(f"{BY_TOWN} LIMIT 0"))


@pytest.mark.parametrize("fetch", [dbapi.Cursor.fetchone, dbapi.Cursor.fetchmany, dbapi.Cursor.fetchall, iter, next])
def test_nothing_is_fetched_without_rows(cursor: dbapi.Cursor, fetch: Any) -> None:
    """Before a query, and after one that failed."""
    with pytest.raises(dbapi.ProgrammingError, match="there are no rows before a query"):
        fetch(cursor)
    cursor.execute(COUNT)
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT x")
    with pytest.raises(dbapi.ProgrammingError, match="there are no rows before a query"):
        fetch(cursor)


@pytest.mark.parametrize(
    "text",
    [
        *("INSERT INTO people VALUES (1)", "UPDATE people SET age = 1", "DELETE FROM people", "DROP TABLE people"),
        *("CREATE TABLE a (b INT)", "TRUNCATE people", "COMMIT", "SET a = 1", "SHOW TABLES"),
    ],
)
def test_nothing_is_written(fake: FakeService, cursor: dbapi.Cursor, text: str) -> None:
    """Any statement but SELECT is refused here."""
    with pytest.raises(dbapi.NotSupportedError, match="answers SELECT, and nothing else"):
        cursor.execute(text)
    assert fake.requests == []


def test_many_queries_are_no_statement(fake: FakeService, cursor: dbapi.Cursor) -> None:
    """Each has rows of its own."""
    with pytest.raises(dbapi.NotSupportedError, match="ask each query by execute"):
        cursor.executemany(f"{COUNT} WHERE age > ?", [(1,), (2,)])
    assert fake.requests == []


def test_commit_and_rollback_have_nothing_to_do(fake: FakeService, connection: dbapi.Connection) -> None:
    """And are there for tools that call them; sizes are as much as nothing."""
    connection.commit()
    connection.rollback()
    cursor = connection.cursor()
    cursor.setinputsizes([1])
    cursor.setoutputsize(1, 2)
    assert (cursor.connection, fake.requests) == (connection, [])


def test_what_is_closed_is_refused(fake: FakeService, connection: dbapi.Connection) -> None:
    """A cursor by itself, and all cursors with their connection; the client that was given stays open."""
    with connection.cursor() as first:
        first.execute(COUNT)
    second = connection.cursor()
    for act in (first.fetchall, lambda: first.execute(COUNT), lambda: next(first)):
        with pytest.raises(dbapi.InterfaceError, match="the cursor is closed"):
            act()
    first.close()
    with connection as same:
        assert same is connection
    connection.close()
    closed: list[Any] = [connection.cursor, connection.commit, connection.rollback, connection.tables, second.fetchone]
    for act in (*closed, lambda: second.execute(COUNT)):
        with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
            act()
    assert connection.client.sql(COUNT, dataset="shop", share=0.01).value == 6
    assert len(fake.queries) == 2


def test_a_connection_makes_its_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of an address and a key, or of the environment; it is closed with the connection."""
    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    for connection in (
        sparing.connect(dataset="shop", sigma=1),
        sparing.connect(dataset="shop", sigma=1, base_url="https://sparing.test", api_key="other"),
    ):
        with connection:
            assert repr(connection.client) == "Client(base_url='https://sparing.test', api_key='********')"
        assert connection.client._sender.pool.http.is_closed


def test_the_noise_and_the_bounds_of_a_connection_are_those_of_its_queries(fake: FakeService) -> None:
    """The arguments are those of `client.sql`."""
    sparing.connect(
        dataset="shop", half_width=20, confidence=0.9, l2_clip=3, reuse=False, client=fake.client()
    ).cursor().execute(COUNT)
    assert fake.queries == [
        {
            "version": 1,
            "select": [{"count": {}}],
            "from": "people",
            "noise": {"half_width": 20, "confidence": 0.9},
            "per_individual": {"l2_clip": 3},
            "reuse": False,
        }
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give exactly one of sigma"),
        ({"sigma": 1, "rho": 1}, "give exactly one of sigma"),
        ({"share": 0.1, "confidence": 0.9}, "confidence goes with half_width"),
        ({"sigma": 1, "color": "red"}, "has no argument color"),
        ({"dataset": None, "sigma": 1}, "dataset must be the name of a dataset"),
        ({"sigma": 1}, "give base_url, or set SPARING_URL"),
    ],
)
def test_a_connection_that_could_not_ask_is_refused(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    """The refusal comes where it is made, and not at its first query."""
    monkeypatch.delenv("SPARING_URL", raising=False)
    with pytest.raises(dbapi.InterfaceError, match=said):
        sparing.connect(**{"dataset": "shop", **options})


def test_columns_of_half_widths_can_be_left_out(fake: FakeService) -> None:
    """For tools that count columns; the answer has them all the same."""
    cursor = sparing.connect(dataset="shop", share=0.01, half_width_columns=False, client=fake.client()).cursor()
    assert cursor.execute(COUNT).fetchall() == [(6,)]
    assert cursor.answer is not None
    assert min(cursor.answer.half_widths) > 0


def test_likely_mistakes_are_python_s_warnings(fake: FakeService) -> None:
    """A tool that reads rows alone would not see them; the rows are there in any case."""
    fake.add_dataset("low", TABLES, rows={"people": ROWS}, rho=100, limit_floor_rho="0.01")
    cursor = sparing.connect(dataset="low", share=0.01, client=fake.client()).cursor()
    with pytest.warns(dbapi.Warning) as caught:
        cursor.execute(BY_TOWN)
    assert cursor.answer is not None
    assert [str(each.message) for each in caught] == [*cursor.answer.warnings, cursor.answer.coverage_words]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dbapi.Warning):
            cursor.execute(BY_TOWN)
    assert len(cursor.fetchall()) == 3


@pytest.mark.parametrize(
    ("status", "slug", "kind"),
    [
        (401, "unauthorized", dbapi.OperationalError),
        (403, "allowance-exceeded", dbapi.OperationalError),
        (404, "not-found", dbapi.ProgrammingError),
        (409, "query-in-progress", dbapi.OperationalError),
        (413, "too-large", dbapi.ProgrammingError),
        (422, "invalid-query", dbapi.ProgrammingError),
        (429, "rate-limited", dbapi.OperationalError),
        (500, "internal", dbapi.InternalError),
        (503, "unavailable", dbapi.OperationalError),
    ],
)
def test_a_refusal_of_the_service_has_its_class(fake: FakeService, status: int, slug: str, kind: Any) -> None:
    """With the service's words, and the client's exception as its cause."""
    cursor = sparing.connect(dataset="shop", share=0.01, client=fake.client(max_retries=0)).cursor()
    fake.refuse(status, slug, detail="Not this time.")
    with pytest.raises(kind, match="Not this time") as caught:
        cursor.execute(COUNT)
    assert type(caught.value) is kind
    assert isinstance(caught.value.__cause__, SparingError)


def subclasses(kind: type[Exception]) -> list[type[Exception]]:
    """All of them, and itself."""
    return [kind, *(each for below in kind.__subclasses__() for each in subclasses(below))]


def test_every_exception_of_the_client_is_translated() -> None:
    """One that is added later too."""
    for kind in [*subclasses(SparingError)[1:], *subclasses(SQLError)]:
        assert any(issubclass(kind, known) for known in dbapi.ERRORS)


@pytest.mark.parametrize(
    ("text", "parameters", "kind"),
    [
        ("SELECT", (), dbapi.ProgrammingError),
        ("SELECT COUNT(*) FROM people WHERE town LIKE 'O%'", (), dbapi.ProgrammingError),
        (f"{COUNT} WHERE age = ?", (), dbapi.ProgrammingError),
        (f"{COUNT} WHERE age = ?", (b"x",), dbapi.DataError),
        (f"{COUNT} WHERE height = 2", (), dbapi.ProgrammingError),
    ],
)
def test_a_mistake_in_a_text_has_its_class(cursor: dbapi.Cursor, text: str, parameters: Any, kind: Any) -> None:
    """Mistakes found here and those found by the service; a column that is not there is named."""
    with pytest.raises(kind) as caught:
        cursor.execute(text, parameters)
    assert type(caught.value) is kind
    assert "height" not in text or "height" in str(caught.value)


@pytest.fixture
def wide(fake: FakeService) -> dbapi.Cursor:
    """A cursor of a dataset with more groups than the service sends labels for."""
    columns = {"age": {"type": "integer", "lower": 0, "upper": 10_001}}
    tables = {"people": {"kind": "individuals", "key": "id", "columns": columns}}
    fake.add_dataset("wide", tables, rows={"people": [{"id": 1, "age": 10_001}]}, rho=100)
    return sparing.connect(dataset="wide", share=0.01, client=fake.client(max_retries=0)).cursor()


WIDE = "SELECT BINS(age, 1) AS age, COUNT(*) FROM people GROUP BY age"


def test_an_answer_without_labels_gets_them_from_the_schema(wide: dbapi.Cursor) -> None:
    """So that its rows are named like any others."""
    rows = wide.execute(WIDE).fetchall()
    assert [row[:2] for row in (rows[0], rows[-1])] == [("[0, 1)", 0), ("[10000, 10001]", 1)]
    assert len(rows) == 10_001


def test_an_answer_whose_labels_are_not_found_is_kept(fake: FakeService, wide: dbapi.Cursor) -> None:
    """It is paid for: the cursor has it where the schema could not be read."""
    fake.answer(lambda _: fake.break_connection())
    with pytest.raises(dbapi.OperationalError):
        wide.execute(WIDE)
    assert wide.answer is not None
    assert wide.answer.values[-1] == 1


def test_tables_are_those_of_the_schema(fake: FakeService, connection: dbapi.Connection) -> None:
    """The service describes them; a failure has a class of this interface."""
    assert connection.tables().keys() == {"people"}
    fake.refuse(404, "not-found")
    with pytest.raises(dbapi.ProgrammingError):
        connection.tables()


def test_threads_share_a_connection(fake: FakeService, connection: dbapi.Connection) -> None:
    """Each thread has a cursor of its own, as the level of the module says."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - of this test alone

    def rows(age: int) -> Any:
        with contextlib.closing(connection.cursor()) as own:
            return own.execute(f"{COUNT} WHERE age < ?", (age,)).fetchall()[0][0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(rows, range(6))) == list(range(6))


def test_the_rows_of_a_connection_are_those_of_events(fake: FakeService) -> None:
    """An individual has one row, so that the table of individuals is asked without them."""
    with sparing.connect(dataset="shop", share=0.01, rows=2, client=fake.client()) as connection:
        connection.cursor().execute(COUNT)
    assert "per_individual" not in fake.queries[-1]


def test_a_refusal_names_the_arguments_of_connect() -> None:
    """No argument is called `per_individual`; a number of rows that is stated is taken."""
    people = {"kind": "individuals", "key": "id", "columns": {"age": {"type": "integer", "lower": 0, "upper": 9}}}
    buys = {"kind": "events", "key": "id", "rows_per_individual": 100, "columns": {}}
    with FakeService() as fake:
        fake.add_dataset("shop", {"people": people, "buys": buys}, rows={"people": [{"id": 1, "age": 2}], "buys": []})
        connected: dict[str, Any] = {"dataset": "shop", "share": 0.01, "client": fake.client()}
        with pytest.raises(dbapi.ProgrammingError, match=r"\bl2_clip: is required") as refused:
            sparing.connect(**connected).cursor().execute("SELECT COUNT(*) FROM buys")
        assert "per_individual" not in str(refused.value)
        sparing.connect(**connected, rows=100).cursor().execute("SELECT COUNT(*) FROM buys")
