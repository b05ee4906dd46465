"""The tree of a SELECT: its nodes, and its names as the query language has them, without the alias of the table."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Expression

Tables = Mapping[str, Any]
"""The public schema of a dataset; empty if it is unknown."""

WORDS: Final = frozenset({"GROUP", "HAVING", "ORDER", "SELECT", "WHERE"})
"""Keywords that the parser reads as names at places where no clause can begin."""


def put_names(tree: "Expression", tables: Callable[[], Tables]) -> Mapping[str, Any]:
    """Rename tables and columns in a tree as the schema writes them, and return the schema of the table in FROM.

    Columns of the table in FROM lose its name. Case is ignored in names without quotes. Unknown names stay as they are.
    """
    source: Any = tree.args.get("from_")
    table: Any = None if source is None else source.this
    if kind_of(table) != "Table" or kind_of(table.this) != "Identifier":
        return {}
    schema = tables()
    written, alias = table.this.copy(), table.args.get("alias")
    own = [written] if alias is None or alias.args.get("columns") else [alias.this, written]
    if len(own) > 1:
        table.set("alias", None)
    name = _declared(table.this, schema)
    for column in [node for node in tree.walk() if kind_of(node) == "Column" and kind_of(node.this) == "Identifier"]:
        of = column.args.get("table")
        if of is not None and any(_are_one(of, each) for each in own):
            column.set("table", None)
            of = None
        found = schema.get(name if of is None else _declared(of, schema), {})
        _declared(column.this, [str(found.get("key", "")), *found.get("columns", ())])
    declared: Mapping[str, Any] = schema.get(name, {})
    return declared


def _are_one(one: "Expression", other: "Expression") -> bool:
    is_exact = one.args.get("quoted") and other.args.get("quoted")
    return one.name == other.name if is_exact else one.name.casefold() == other.name.casefold()


def _declared(identifier: "Expression", known: Collection[str]) -> str:
    """The name of an identifier, after it was renamed to the one known name that differs from it in capitals alone.

    An identifier in quotes keeps its name, and loses quotes that it does not need.
    """
    name = identifier.name
    if identifier.args.get("quoted"):
        identifier.set("quoted", not name.isidentifier() or name.upper() in WORDS)
    elif name not in known:
        alike = [each for each in known if each.casefold() == name.casefold()]
        identifier.set("this", alike[0] if len(alike) == 1 else name)
    return str(identifier.name)


def kind_of(node: object) -> str:
    """The name of a node's class, such as `Select`."""
    return type(node).__name__


def text_of(node: "Expression") -> str:
    """A node as SQL."""
    render: Callable[..., str] = node.sql
    return render(dialect="postgres")
