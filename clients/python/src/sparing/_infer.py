"""A proposal for a schema, made from the data on the curator's own machine, and never by the service.

A schema is public. A domain that is read off the data (bounds, categories, rows of one individual) can tell about an
individual, such as the oldest. So every such domain has an entry `confirm` that says so, and the service refuses a
registration with this entry. The curator has to replace the domain by one known from elsewhere, or to accept it, for
each column.
"""

import csv
import io
import itertools
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparing._domains import Seen, plain_name
from sparing._files import ARROW, CSV, Source, opened_of
from sparing._frames import Frame, is_frame, pyarrow

CONFIRM_ROWS = "rows_per_individual was read off the data: state a bound that holds for any data"
PEOPLE_WORDS = frozenset(
    "person individual customer patient user subject member client participant respondent employee student guest"
    " visitor subscriber applicant citizen resident".split()
)
KEY_WORDS = frozenset({"id", "key", "no", "number", "code"})
CANDIDATES_MAX = 5
RESERVED = "select"
"""A word that no column may be called, as the labels of answers use it."""
MARKS = (",", ";", "\t", "|")
NAME_CHARACTERS_MAX = 63


def infer_schema(
    data: Frame | Source, *, table: str | None = None, key: str | None = None, kind: str | None = None
) -> dict[str, Any]:
    """Propose the schema of one table from a data frame or a file. Nothing is sent anywhere.

    Args:
        data: data as `client.datasets.upload` takes it.
        table: the table's name; by default that of the file.
        key: the column that names the individual; by default a guess by its name, which is marked.
        kind: `individuals` (one row each) or `events`; by default `events` if a key repeats.

    Returns:
        `tables`, the proposal; `columns`, the mapping for an upload if names had to change; `left_out`, the columns for
        which no declaration fits, with reasons; `delimiter` of a CSV file if it is not a comma; and `decimal` if its
        numbers have commas. An entry `confirm` marks a table whose key or kind is guessed, and every domain read off
        the data. No registration is accepted with it.

    Raises:
        ValueError: the data is empty, is not UTF-8, has no such key or two columns of one name, or `kind` is neither of
            the two.
    """
    if kind not in {None, "individuals", "events"}:
        raise ValueError("kind must be 'individuals' or 'events'")
    delimiter, found = _seen(data)
    named = _names(found)
    chosen = _key_of(found, key)
    left_out = {name: reason for name, seen in found.items() if name != chosen and (reason := seen.obstacle())}
    kept = {named[name]: seen.column() for name, seen in found.items() if name != chosen and name not in left_out}
    declared = _table(found[chosen], named[chosen], kept, kind)
    guesses = [_guessed_key(found, named, chosen)] if key is None else []
    guesses += [f"the kind is {declared['kind']} as the key {_repeats(declared)}"] if kind is None else []
    guesses += [CONFIRM_ROWS] if declared["kind"] == "events" else []
    if guesses:
        declared["confirm"] = f"{'; '.join(guesses)}; state them, or accept them, and remove this line"
    proposal: dict[str, Any] = {"tables": {plain_name(table or _stem(data)): declared}}
    renamed = {
        name: None if name in left_out else new for name, new in named.items() if name != new or name in left_out
    }
    has_commas = any(seen.has_commas for name, seen in found.items() if name != chosen)
    stated = {
        "columns": renamed,
        "left_out": left_out,
        "delimiter": delimiter if delimiter != "," else None,
        "decimal": "," if has_commas else None,
    }
    return proposal | {name: value for name, value in stated.items() if value}


def _table(key: Seen, name: str, columns: Mapping[str, object], kind: str | None) -> dict[str, Any]:
    most = max(key.counts.values(), default=1)
    if (kind or ("individuals" if most == 1 else "events")) == "individuals":
        return {"kind": "individuals", "key": name, "columns": columns}
    bound = 2 ** math.ceil(math.log2(most))
    return {"kind": "events", "key": name, "columns": columns, "rows_per_individual": bound}


def _repeats(declared: Mapping[str, Any]) -> str:
    return "repeats" if declared["kind"] == "events" else "does not repeat"


def _key_of(found: Mapping[str, Seen], key: str | None) -> str:
    """The stated key, or the likeliest column: names for people come first, and the first of equal columns is taken."""
    if key is not None and key not in found:
        raise ValueError(f"there is no column {key!r}; there are {', '.join(map(repr, found))}")
    return max(found, key=_likelihood) if key is None else key


def _likelihood(name: str) -> int:
    """A rank by the words of a name: `patient` is above `id`, `id` above `order_id`, and `order_id` above `paid`."""
    *first, last = plain_name(name).split("_")
    is_of_people = PEOPLE_WORDS.intersection([*first, last.removesuffix("id")])
    if is_of_people and (last in KEY_WORDS or last.removesuffix("id") in PEOPLE_WORDS):
        return 3
    return (1 if first else 2) if last in KEY_WORDS else 0


def _guessed_key(found: Mapping[str, Seen], named: Mapping[str, str], chosen: str) -> str:
    """A sentence on the guessed key, with other columns that may be meant."""
    others = sorted(
        (name for name in found if name != chosen and found[name].may_be_key), key=_likelihood, reverse=True
    )
    listed = ", ".join(f"{named[name]} ({found[name].spread})" for name in [chosen, *others][:CANDIDATES_MAX])
    return f"the key was guessed among {listed}: it must name the individual whose privacy is kept"


def _names(found: Iterable[str]) -> dict[str, str]:
    """The name in the schema of each column: lower case letters, digits and underscores, and unique."""
    taken, named = {RESERVED}, dict[str, str]()
    for name in found:
        plain = plain_name(name)
        ends = itertools.chain([""], map("_{}".format, itertools.count(2)))
        ways = (f"{plain[: NAME_CHARACTERS_MAX - len(end)]}{end}" for end in ends)
        named[name] = next(way for way in ways if way not in taken)
        taken.add(named[name])
    return named


def _stem(data: Frame | Source) -> str:
    return Path(data).name.partition(".")[0] if isinstance(data, str | os.PathLike) else "people"


def _seen(data: Frame | Source) -> tuple[str, dict[str, Seen]]:
    """The delimiter, and the values of every column."""
    delimiter, columns = ",", {}
    if is_frame(data):
        columns = {name: Seen(values, is_text=False) for name, values in _of_frame(data)}
    else:
        opened, content_type, _ = opened_of(data)
        if content_type not in {CSV, "application/x-ndjson"}:
            with opened() as file:
                return _seen(_read_arrow(file.read(), content_type))
        with opened() as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            try:
                delimiter, rows = (
                    _csv_rows(text) if content_type == CSV else (",", map(json.loads, filter(str.strip, text)))
                )
                columns = _by_column(rows, is_text=content_type == CSV)
            except UnicodeDecodeError:
                raise ValueError("the file is not UTF-8: save it as UTF-8, which an upload takes") from None
    if not columns:
        raise ValueError("there is no column")
    return delimiter, columns


def _by_column(rows: Iterable[Mapping[str, object]], *, is_text: bool) -> dict[str, Seen]:
    columns: dict[str, Seen] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, Seen((), is_text=is_text)).add(value)
    return columns


def _csv_rows(text: io.TextIOWrapper) -> tuple[str, Iterator[dict[str, object]]]:
    """The delimiter, guessed from the header, and the rows; a row of another length than the header is left out.

    Raises ValueError if the first line is an instruction for a spreadsheet, or a name occurs twice.
    """
    first = text.readline()
    if first.lower().startswith("sep="):
        raise ValueError(f"the first line, {first.strip()!r}, is for a spreadsheet: remove it, as an upload takes none")
    delimiter = max(MARKS, key=first.count)
    reader = csv.reader(itertools.chain([first], text), delimiter=delimiter)
    header = next(reader, [])
    for name, count in Counter(header).items():
        if count > 1:
            raise ValueError(f"the column {name!r} is there {count} times: an upload takes each name once")
    rows = (row for row in reader if len(row) == len(header))
    return delimiter, (dict(zip(header, row, strict=True)) for row in rows)


def _of_frame(frame: Frame) -> Iterator[tuple[str, Sequence[object]]]:
    library = type(frame).__module__.partition(".")[0]
    if library == "polars":
        frame = frame.collect() if hasattr(frame, "collect") else frame
        yield from ((name, frame[name].to_list()) for name in frame.columns)
    elif library == "pandas":
        yield from ((str(name), values.tolist()) for name, values in frame.items())
    else:
        table = pyarrow("an Arrow table").table(frame)
        yield from ((name, table.column(name).to_pylist()) for name in table.column_names)


def _read_arrow(content: bytes, content_type: str) -> Frame:
    arrow = pyarrow("a Parquet file or Arrow stream")
    if content_type == ARROW:
        return arrow.ipc.open_stream(io.BytesIO(content)).read_all()
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where a Parquet file is read

    return pq.read_table(io.BytesIO(content))
