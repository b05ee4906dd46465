"""The dialect of SQLAlchemy: `create_engine("sparing://:KEY@host/shop?share=0.01")`, whose password is the API key.

`sparing` speaks HTTPS; `sparing+http` speaks plain HTTP, for a service on the same machine. SPARING_URL and
SPARING_API_KEY replace a missing host or key. SQLAlchemy finds this module by the distribution's entry points.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from sqlalchemy import exc, types
from sqlalchemy.engine import URL, default
from sqlalchemy.sql import compiler

from sparing import dbapi as interface

TYPES: Final[Mapping[str, type[types.TypeEngine[Any]]]] = {
    "boolean": types.Boolean,
    "category": types.String,
    "date": types.Date,
    "datetime": types.DateTime,
    "integer": types.Integer,
    "real": types.Float,
}
"""SQLAlchemy's types by the schema's types. Columns of other types, such as one of limits, cannot be queried."""


def _number(text: str) -> float | list[float]:
    """One number, or a list of numbers separated by commas, one for each select item."""
    numbers = [float(each) for each in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _switch(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


OPTIONS: Final[Mapping[str, Callable[[str], object]]] = {
    **dict.fromkeys(("sigma", "rho", "share", "half_width", "confidence", "weights", "l2_clip"), _number),
    "rows": int,
    "reuse": _switch,
    "half_width_columns": _switch,
}
"""The arguments of `sparing.connect` that a URL may give, and their readers."""


class SparingCompiler(compiler.SQLCompiler):
    """Compares boolean columns with TRUE or FALSE, as the dialect takes no column as a condition."""

    def visit_is_true_unary_operator(self, element: Any, operator: Any, **kw: Any) -> str:  # noqa: ANN401, ARG002 - of SQLAlchemy
        """The text of `where(table.c.member)`; a condition in the place of the column stays as it is."""
        text: str = self.process(element.element, **kw)
        return text if element._is_implicitly_boolean else f"{text} = TRUE"  # noqa: SLF001 - as the base class does

    def visit_is_false_unary_operator(self, element: Any, operator: Any, **kw: Any) -> str:  # noqa: ANN401, ARG002 - as above
        """The text of `where(~table.c.member)`."""
        text: str = self.process(element.element, **kw)
        return f"NOT {text}" if element._is_implicitly_boolean else f"{text} = FALSE"  # noqa: SLF001 - as above


class SparingPreparer(compiler.IdentifierPreparer):
    """Quotes every name, so that no name is read as a keyword of SQL."""

    def _requires_quotes(self, value: str) -> bool:  # noqa: ARG002 - as above
        return True


class SparingDialect(default.DefaultDialect):
    """The dialect over HTTPS; its tables and columns are those of the dataset's public schema."""

    name = "sparing"
    driver = "https"
    default_paramstyle = interface.paramstyle
    statement_compiler = SparingCompiler
    preparer = SparingPreparer
    supports_statement_cache = True
    supports_native_boolean = True
    supports_alter = False
    supports_sane_rowcount = False
    postfetch_lastrowid = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The PEP 249 module that this dialect uses."""
        return interface

    dbapi = import_dbapi  # type: ignore[assignment]  # its name in SQLAlchemy 1.4

    def create_connect_args(self, url: URL) -> tuple[list[str], dict[str, Any]]:
        """The arguments of `sparing.connect` in a URL. Raises ArgumentError, which names the wrong option."""
        arguments: dict[str, Any] = {"dataset": url.database or ""}
        if url.host:
            host = f"[{url.host}]" if ":" in url.host else url.host
            arguments["base_url"] = f"{self.driver}://{host}" + (f":{url.port}" if url.port else "")
        if url.password:
            arguments["api_key"] = url.password
        for name, value in url.query.items():
            try:
                arguments[name] = OPTIONS[name](str(value))
            except (KeyError, ValueError):
                raise exc.ArgumentError(f"{name}={value} is not an option of sparing://; see docs/sql.md") from None
        return [], arguments

    def do_ping(self, dbapi_connection: Any) -> bool:  # noqa: ANN401 - of SQLAlchemy
        """Tell whether the service answers and knows the key, by reading the schema; no query is asked."""
        dbapi_connection.tables()
        return True

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:  # noqa: ANN401, ARG002 - as above
        """No names: a dataset has its tables and no schemas."""
        return []

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:  # noqa: ANN401 - as above
        """The tables of the dataset."""
        return [] if schema else list(self._tables(connection, **kw))

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:  # noqa: ANN401, ARG002 - as above
        """No names: a dataset has no views."""
        return []

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:  # noqa: ANN401 - as above
        """Tell whether the dataset has the table."""
        return table_name in self.get_table_names(connection, schema, **kw)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:  # noqa: ANN401 - as above
        """The columns that may be queried; any value may be NULL. The key of the individuals cannot be queried."""
        columns = self._table(connection, table_name, schema, **kw)["columns"]
        return [
            {"name": name, "type": _type_of(column), "nullable": True, "default": None}
            for name, column in columns.items()
            if column["type"] in TYPES
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:  # noqa: ANN401 - as above
        """No primary key, as keys of individuals cannot be queried."""
        self._table(connection, table_name, schema, **kw)
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:  # noqa: ANN401 - as above
        """No foreign keys, as keys of individuals cannot be queried."""
        self._table(connection, table_name, schema, **kw)
        return []

    get_indexes = get_unique_constraints = get_check_constraints = get_foreign_keys

    def _table(self, connection: Any, name: str, schema: str | None, **kw: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as above
        tables = {} if schema else self._tables(connection, **kw)
        if name not in tables:
            raise exc.NoSuchTableError(name)
        found: Mapping[str, Any] = tables[name]
        return found

    def _tables(self, connection: Any, **kw: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as above
        """The public schema, read once for each inspector and kept in its `info_cache`."""
        kept = kw.get("info_cache")
        kept = {} if kept is None else kept
        if "sparing" not in kept:
            kept["sparing"] = connection.connection.tables()
        found: Mapping[str, Any] = kept["sparing"]
        return found


class PlainSparingDialect(SparingDialect):
    """The dialect over plain HTTP."""

    driver = "http"


def _type_of(column: Mapping[str, Any]) -> types.TypeEngine[Any]:
    """SQLAlchemy's type of a column; categories are integers if declared by a size, and otherwise texts."""
    return types.Integer() if column.get("size") else TYPES[column["type"]]()
