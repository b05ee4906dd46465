"""The columns of the data that are sent, and their names in the schema."""

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

Columns = Mapping[str, str | None]
"""A mapping from columns of the data to declared names; None leaves a column out. Other columns keep their names."""


class ColumnsError(ValueError):
    """The data does not have the declared columns; the message names each wrong column and proposes a mapping."""


def declared_columns(tables: Mapping[str, object], table: str) -> list[str]:
    """The key and the columns of a table, as registered. Raises ColumnsError for an unknown table."""
    found = tables.get(table)
    if not isinstance(found, Mapping):
        raise ColumnsError(f"the dataset has no table {table!r}{_meant(table, tables)}")
    return [str(found["key"]), *map(str, found["columns"])]


def chosen_columns(found: Sequence[str], columns: Columns, declared: Sequence[str]) -> dict[str, str]:
    """The columns to send, in the order of the data, each with its declared name.

    Raises ColumnsError unless these are exactly the declared columns.
    """
    complaints = [*_complaints(found, columns, declared)]
    if complaints:
        raise ColumnsError("; ".join(complaints))
    return _named(found, columns)


def _complaints(found: Sequence[str], columns: Columns, declared: Sequence[str]) -> Iterator[str]:
    for name in columns:
        if name not in found:
            yield f"`columns` names {name!r}, which the data does not have{_meant(name, found)}"
    yield from (f"{name!r} appears {count} times in the data" for name, count in Counter(found).items() if count > 1)
    names = _named(found, columns)
    targets = Counter(names.values())
    yield from (f"{count} columns would become {name!r}" for name, count in targets.items() if count > 1)
    missing = [name for name in declared if name not in targets]
    for name, target in names.items():
        if target not in declared:
            yield f"{target!r} is not declared{_advice(name, missing)}"
    yield from (f"{name!r} is missing" for name in missing)


def _named(found: Sequence[str], columns: Columns) -> dict[str, str]:
    chosen = {name: columns.get(name, name) for name in found}
    return {name: target for name, target in chosen.items() if target is not None}


def _advice(name: str, missing: Collection[str]) -> str:
    near = _nearest(name, missing)
    proposal = "" if near is None else f"map it with columns={{{name!r}: {near!r}}}, or "
    return f": {proposal}leave it out with columns={{{name!r}: None}}"


def _meant(name: str, known: Collection[str]) -> str:
    near = _nearest(name, known)
    return "" if near is None else f"; did you mean {near!r}?"


def _nearest(name: str, known: Collection[str]) -> str | None:
    """The known name nearest to a name, ignoring case and the marks between words; None if none is near."""
    plain = {_plain(each): each for each in known}
    near = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.6)
    return plain[near[0]] if near else None


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
