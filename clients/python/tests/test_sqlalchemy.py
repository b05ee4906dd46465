"""The dialect: engines of URLs, tables by inspection, queries of SQLAlchemy's own making, and pandas on top of them."""

import datetime as dt
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.orm import Session, declarative_base

import sparing
from sparing import _sqlalchemy, dbapi
from sparing._query import NoiseRequest
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 99},
            "town": {"type": "category", "categories": ["Oslo", "L'Aquila"]},
            "joined": {"type": "date", "lower": "2026-01-01", "upper": "2026-02-28"},
            "at": {"type": "datetime", "lower": "2026-01-01T00:00:00", "upper": "2026-01-02T00:00:00"},
            "member": {"type": "boolean"},
            "spend": {"type": "real", "lower": 0, "upper": 500},
            "limit_rho": {"type": "budget"},
        },
    },
    "buys": {
        "kind": "events",
        "key": "id",
        "rows_per_individual": 4,
        "columns": {"order": {"type": "category", "size": 3}},
    },
}
PEOPLE = [
    {"id": n, "age": n, "town": ["Oslo", "L'Aquila"][n % 2], "member": n < 2, "joined": "2026-02-03", "limit_rho": 50}
    for n in range(5)
]
URL = "sparing://:fake-analyst-key@sparing.test/shop?share=0.01"


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    """The entry points that pyproject.toml states, as SQLAlchemy takes them from an installed distribution."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, place in project["entry-points"]["sqlalchemy.dialects"].items():
        registry.register(name, *place.split(":"))


@pytest.fixture
def fake() -> Iterator[FakeService]:
    """Five people, of whom three live in Oslo."""
    with FakeService() as found:
        rows = {"people": PEOPLE, "buys": [{"id": n, "order": n % 2} for n in range(5)]}
        found.add_dataset("shop", TABLES, rows=rows, rho=100, limit_floor_rho=50)
        yield found


@pytest.fixture
def engine(fake: FakeService) -> Iterator[sa.Engine]:
    """An engine of it."""
    made = sa.create_engine(URL, connect_args={"client": fake.client()})
    yield made
    made.dispose()


@pytest.fixture
def people(engine: sa.Engine) -> sa.Table:
    """The table of individuals, as the schema has it."""
    return sa.Table("people", sa.MetaData(), autoload_with=engine)


def test_sqlalchemy_finds_the_dialects() -> None:
    """By the names that URLs begin with."""
    kinds = [sa.make_url(f"{name}://host/shop").get_dialect() for name in ("sparing", "sparing+http")]
    assert kinds == [_sqlalchemy.SparingDialect, _sqlalchemy.PlainSparingDialect]


ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    (
        "sparing://:a%2Fb@sparing.test/shop?share=.01",
        {"dataset": "shop", "base_url": "https://sparing.test", "api_key": "a/b", "share": 0.01},
    ),
    (
        "sparing+http://ann:k@localhost:8000/d?rho=1",
        {"dataset": "d", "base_url": "http://localhost:8000", "api_key": "k", "rho": 1.0},
    ),
    (
        "sparing://[::1]:8000/d?half_width=10,5000&confidence=.9",
        {"dataset": "d", "base_url": "https://[::1]:8000", "half_width": [10.0, 5000.0], "confidence": 0.9},
    ),
    (
        "sparing:///d?sigma=20&l2_clip=5&rows=3&reuse=false",
        {"dataset": "d", "sigma": 20.0, "l2_clip": 5.0, "rows": 3, "reuse": False},
    ),
    (
        "sparing:///d?share=.1&weights=3,1&half_width_columns=False",
        {"dataset": "d", "share": 0.1, "weights": [3.0, 1.0], "half_width_columns": False},
    ),
]


@pytest.mark.parametrize(("url", "arguments"), ARGUMENTS)
def test_a_url_gives_the_arguments_of_connect(url: str, arguments: dict[str, Any]) -> None:
    """The address, the key as the password, the dataset as the database, and the rest as options."""
    parsed = sa.make_url(url)
    kind = _sqlalchemy.PlainSparingDialect if "+http" in url else _sqlalchemy.SparingDialect
    assert kind().create_connect_args(parsed) == ([], arguments)


@pytest.mark.parametrize("option", ["color=red", "share=much", "rows=1.5", "reuse=perhaps", "share=.1&share=.2"])
def test_an_option_that_is_none_is_refused(option: str) -> None:
    """By its name."""
    with pytest.raises(sa.exc.ArgumentError, match=f"^{option.partition('=')[0]}=.* is not an option of sparing://"):
        sa.create_engine(f"sparing://:k@sparing.test/shop?{option}").connect()


def test_every_option_of_a_url_is_an_argument_of_connect() -> None:
    """Those of the noise are in a dictionary of their own."""
    named = {*inspect.signature(sparing.connect).parameters, *NoiseRequest.__annotations__, "weights"}
    assert _sqlalchemy.OPTIONS.keys() <= named


def test_an_engine_hides_the_key() -> None:
    """The password of a URL is hidden, as for every database."""
    assert "fake-analyst-key" not in repr(sa.create_engine(URL))


def test_tables_and_columns_are_those_of_the_schema(fake: FakeService, engine: sa.Engine) -> None:
    """Each may be NULL; keys of individuals and their limits are no columns, and the schema is read once."""
    inspector = sa.inspect(engine)
    columns = {each["name"]: each for each in inspector.get_columns("people")}

    assert inspector.get_table_names() == ["people", "buys"]
    assert {name: type(each["type"]) for name, each in columns.items()} == {
        "age": sa.Integer,
        "town": sa.String,
        "joined": sa.Date,
        "at": sa.DateTime,
        "member": sa.Boolean,
        "spend": sa.Float,
    }
    assert all(each["nullable"] for each in columns.values())
    assert isinstance(inspector.get_columns("buys")[0]["type"], sa.Integer)
    assert (inspector.get_pk_constraint("buys")["constrained_columns"], inspector.get_foreign_keys("buys")) == ([], [])
    assert (inspector.get_indexes("buys"), inspector.get_unique_constraints("buys")) == ([], [])
    assert (inspector.get_view_names(), inspector.get_schema_names()) == ([], [])
    assert [inspector.has_table(name) for name in ("people", "nobody")] == [True, False]
    assert inspector.get_table_names(schema="other") == []
    assert [request.path for request in fake.requests] == ["/v1/datasets/shop"]


READERS: list[Callable[[Any, str], Any]] = [
    lambda found, name: found.get_columns(name),
    lambda found, name: found.get_pk_constraint(name),
    lambda found, name: found.get_foreign_keys(name),
    lambda found, name: found.get_indexes(name),
    lambda found, name: found.get_columns("people", schema=name),
]


@pytest.mark.parametrize("read", READERS)
def test_a_table_that_is_not_there_is_named(engine: sa.Engine, read: Callable[[Any, str], Any]) -> None:
    """With SQLAlchemy's own error."""
    with pytest.raises(sa.exc.NoSuchTableError, match=r"nobody|people"):
        read(sa.inspect(engine), "nobody")


def test_a_ping_reads_the_schema_and_asks_nothing(fake: FakeService) -> None:
    """So that a pool may test its connections."""
    engine = sa.create_engine(URL, pool_pre_ping=True, connect_args={"client": fake.client()})
    for _ in range(2):
        with engine.connect() as connection:
            assert connection.dialect.do_ping(connection.connection.dbapi_connection)  # type: ignore[arg-type]
    assert fake.queries == []
    assert len(fake.requests) == 3


COUNT = sa.func.count()
SELECTS: list[tuple[Callable[[Any], Any], list[tuple[Any, ...]]]] = [
    (lambda c: sa.select(COUNT), [(5,)]),
    (lambda c: sa.select(c.town, COUNT).group_by(c.town), [("Oslo", 3), ("L'Aquila", 2)]),
    (lambda c: sa.select(COUNT).where(c.town == "L'Aquila"), [(2,)]),
    (lambda c: sa.select(COUNT).where(c.town.in_(["L'Aquila", "Oslo"]), c.age.between(1, 3)), [(3,)]),
    (lambda c: sa.select(COUNT).where(c.member), [(2,)]),
    (lambda c: sa.select(COUNT).where(~c.member), [(3,)]),
    (lambda c: sa.select(COUNT).where(c.member == sa.true()), [(2,)]),
    (lambda c: sa.select(COUNT).where(~(c.member & (c.age > 0))), [(4,)]),
    (
        lambda c: sa.select(COUNT).where(sa.or_(c.age * 2 - 1 > 4, c.age.is_(None), c.joined < dt.date(2026, 1, 9))),
        [(2,)],
    ),
    (lambda c: sa.select(COUNT).where(c.age.not_in([1, 2])), [(3,)]),
    (lambda c: sa.select(sa.func.sum(c.age), COUNT.label("n")), [(10, 5)]),
    (lambda c: sa.select(sa.func.count_individuals()).select_from(c.age.table), [(5,)]),
    (lambda c: sa.select(sa.func.histogram(c.member)), [(False, 3), (True, 2)]),
    (
        lambda c: sa.select(sa.func.bins(c.age, 0, 2, 99), COUNT).group_by(sa.func.bins(c.age, 0, 2, 99)),
        [("[0, 2)", 2), ("[2, 99]", 3)],
    ),
    (
        lambda c: sa.select(sa.func.date_trunc("month", c.joined).label("m"), COUNT).group_by("m"),
        [(dt.date(2026, 1, 1), 0), (dt.date(2026, 2, 1), 5)],
    ),
    (lambda c: sa.select(c.town, COUNT.label("n")).group_by(c.town).order_by("n").limit(1), [("L'Aquila", 2)]),
    (
        lambda c: sa.select(c.member.label("m"), COUNT).group_by(c.member).order_by(sa.desc(c.member)),
        [(True, 2), (False, 3)],
    ),
    (lambda c: sa.select(c.member, COUNT).group_by(c.member).limit(5).offset(1), [(True, 2)]),
    (
        lambda c: sa.select(sa.extract("isodow", c.joined), COUNT).group_by(sa.extract("isodow", c.joined)).limit(2),
        [(1, 0), (2, 5)],
    ),
]


@pytest.mark.parametrize(("select", "rows"), SELECTS)
def test_a_query_of_sqlalchemy_is_answered(
    fake: FakeService, people: sa.Table, select: Callable[[Any], Any], rows: list[tuple[Any, ...]]
) -> None:
    """The compiler writes it in the dialect's words, with every name in quotes."""
    options = {"client": fake.client(), "half_width_columns": False}
    with sa.create_engine(URL, connect_args=options).connect() as connection:
        found = connection.execute(select(people.c).select_from(people)).all()
    assert len(found) == len(rows)
    assert all(tuple(row) == pytest.approx(expected) for row, expected in zip(found, rows, strict=True))


@pytest.mark.filterwarnings("ignore:This answer was released")
def test_half_widths_are_columns_found_by_their_names(engine: sa.Engine, people: sa.Table) -> None:
    """Beside those that the statement names, in each execution of a kept statement."""
    select = sa.select(people.c.town, COUNT.label("n")).group_by(people.c.town)
    with engine.connect() as connection:
        for _ in range(2):
            result = connection.execute(select)
            assert list(result.keys()) == ["town", "n", "n_half_width"]
            row = result.mappings().first()
            assert row is not None
            assert (row["town"], row["n"], row["n_half_width"] > 0) == ("Oslo", 3, True)


def test_words_of_sql_are_names_of_columns(engine: sa.Engine) -> None:
    """`order` is a word, and stands in quotes."""
    buys = sa.Table("buys", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert [row[:2] for row in connection.execute(sa.select(buys.c.order, COUNT).group_by(buys.c.order))] == [
            (0, 3),
            (1, 2),
            (2, 0),
        ]


def test_a_session_reads(engine: sa.Engine) -> None:
    """The ORM's sessions begin and end transactions, which are nothing here."""
    base: Any = declarative_base()

    class Individual(base):  # type: ignore[misc]
        __tablename__ = "people"
        age = sa.Column(sa.Integer, primary_key=True)

    with Session(engine) as session, session.begin():
        assert session.execute(sa.select(sa.func.sum(Individual.age))).all()[0][0] == 10
        session.add(Individual(age=3))
        with pytest.raises(sa.exc.NotSupportedError, match="answers SELECT, and nothing else"):
            session.flush()
        session.rollback()


@pytest.mark.parametrize("statement", [sa.schema.CreateTable, sa.insert, sa.delete])
def test_nothing_is_written(fake: FakeService, engine: sa.Engine, people: sa.Table, statement: Any) -> None:
    """Tables neither."""
    asked = len(fake.requests)
    with engine.connect() as connection, pytest.raises(sa.exc.NotSupportedError):
        connection.execute(statement(people))
    assert len(fake.requests) == asked


@pytest.mark.parametrize(
    "select",
    [
        lambda c: sa.select(c.age),
        lambda c: sa.select(COUNT).where(c.age == sa.select(sa.func.max(c.age)).scalar_subquery()),
        lambda c: sa.select(COUNT).where(c.town.like("O%")),
        lambda c: sa.select(sa.cast(c.age, sa.String), COUNT).group_by(c.age),
    ],
)
def test_what_the_dialect_has_not_is_refused(engine: sa.Engine, people: sa.Table, select: Callable[[Any], Any]) -> None:
    """The text written by hand is refused, too."""
    with engine.connect() as connection, pytest.raises(sa.exc.ProgrammingError):
        connection.execute(select(people.c))


TEXT = "SELECT town, COUNT(*) AS n FROM people WHERE age >= {} GROUP BY town"


@pytest.mark.filterwarnings("ignore:This answer was released")
def test_pandas_reads_through_an_engine_and_a_connection(engine: sa.Engine, people: sa.Table) -> None:
    """A text with marks, a text with names, and a statement; without a warning, unlike the interface alone."""
    town = people.c.town
    statement = sa.select(town, COUNT.label("n")).where(people.c.age >= 1).group_by(town)
    with engine.connect() as connection:
        frames = [
            pd.read_sql(TEXT.format("?"), engine, params=(1,)),
            pd.read_sql(sa.text(TEXT.format(":age")), connection, params={"age": 1}),
            pd.read_sql(statement, connection),
            pd.read_sql_query(statement, engine),
        ]
    for frame in frames:
        widths = frame.pop("n_half_width")
        assert frame.to_dict("list") == {"town": ["Oslo", "L'Aquila"], "n": [2, 2]}
        assert (widths > 0).all()


@pytest.mark.filterwarnings("ignore:This answer was released")
def test_the_code_of_the_page_runs(fake: FakeService, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The code as printed in docs/sql.md, over the network that the fake is."""
    page = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
    *_, code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.setenv("SPARING_URL", fake.url)
    monkeypatch.setenv("SPARING_API_KEY", fake.api_key)
    monkeypatch.setattr(
        httpx.HTTPTransport, "handle_request", lambda _, request: fake.transport.handle_request(request)
    )
    exec(compile(code.replace("40", "2"), "sql.md", "exec"), {})  # noqa: S102 - our own page

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[:2] for line in lines[:2]] == [["Oslo:", "2"], ["L'Aquila:", "1"]]
    assert lines[2].split() == ["town", "n", "n_half_width"]
    assert [each["where"] for each in fake.queries] == [{"ge": [{"col": "age"}, 2]}] * 2


def test_a_lost_connection_is_an_operational_error(fake: FakeService) -> None:
    """Which tools take for a reason to try again."""
    engine = sa.create_engine(URL, connect_args={"client": fake.client(max_retries=0)})
    fake.break_connection()
    with engine.connect() as connection, pytest.raises(sa.exc.OperationalError) as caught:
        connection.exec_driver_sql("SELECT COUNT(*) FROM people")
    assert isinstance(caught.value.orig, dbapi.OperationalError)


def test_nobody_loads_sqlalchemy_who_does_not_use_it() -> None:
    """It is an extra: `import sparing` and `sparing.connect` do without."""
    code = "import sys, sparing; sparing.connect(dataset='d', sigma=1, base_url='https://a.test', api_key='k').close();"
    code += "print(sorted({'sqlalchemy', 'sqlglot', 'pandas'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
