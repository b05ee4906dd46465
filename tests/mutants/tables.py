"""The catalogue of seeded bugs: a TOML table for each room of the code, sorted by file and function."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from tests.mutants.mutant import Mutant

FOLDER = Path(__file__).parent
MEMBERS = [field.name for field in fields(Mutant)]
LINE_MAX = 120


class Malformed(Exception):
    """A table that is not made of mutants."""


def read(folder: Path = FOLDER) -> list[Mutant]:
    """All mutants, room by room. Raises Malformed."""
    mutants = [mutant for path in sorted(folder.glob("*.toml")) for mutant in _read(path)]
    twice = [name for name, count in Counter(mutant.name for mutant in mutants).items() if count > 1]
    if twice:
        raise Malformed(f"more than one mutant has the name {twice[0]!r}")
    return mutants


def written(mutants: Iterable[Mutant]) -> dict[str, str]:
    """The texts of the tables, by the name of the file."""
    ordered = sorted(mutants, key=lambda mutant: (room(mutant.file), mutant.file, mutant.definition, mutant.name))
    return {
        f"{name}.toml": "\n".join(_text(mutant) for mutant in group)
        for name, group in groupby(ordered, key=lambda mutant: room(mutant.file))
    }


def write(mutants: Iterable[Mutant], folder: Path = FOLDER) -> None:
    """Put these mutants in place of all that the tables have."""
    texts = written(mutants)
    for path in set(folder.glob("*.toml")) - {folder / name for name in texts}:
        path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)


def room(file: str) -> str:
    """The room of a source file: the folder under service/, or the topmost one."""
    parts = PurePosixPath(file).parts
    return PurePosixPath(parts[1] if parts[0] == "service" else parts[0]).stem


def _read(path: Path) -> Iterator[Mutant]:
    try:
        table = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise Malformed(f"{path.name}: {error}") from error
    entries = table.pop("mutant", None)
    if table or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Malformed(f"{path.name}: only [[mutant]] may stand in it, not {sorted(table)}")
    for number, entry in enumerate(entries, 1):
        yield _mutant(entry, f"{path.name}: mutant {number} ({entry.get('name', 'without a name')})")


def _mutant(entry: dict[str, Any], place: str) -> Mutant:
    missing, unknown = sorted(set(MEMBERS) - set(entry)), sorted(set(entry) - set(MEMBERS))
    if missing or unknown:
        raise Malformed(f"{place}: missing {missing}, unknown {unknown}")
    killers = entry["killed_by"]
    if not isinstance(killers, list) or not killers or not all(isinstance(node, str) and node for node in killers):
        raise Malformed(f"{place}: killed_by is a list of node ids or files")
    wrong = [name for name in MEMBERS[:-1] if not isinstance(entry[name], str) or not (entry[name] or name == "put")]
    if wrong:
        raise Malformed(f"{place}: {wrong[0]} is a text that is not empty")
    return Mutant(**entry | {"killed_by": tuple(killers)})


def _text(mutant: Mutant) -> str:
    texts = "".join(f"{name} = {_literal(getattr(mutant, name))}\n" for name in MEMBERS[:-1])
    killers = [_literal(node) for node in mutant.killed_by]
    line = f"killed_by = [{', '.join(killers)}]"
    if len(line) > LINE_MAX:
        line = "killed_by = [\n" + "".join(f"  {node},\n" for node in killers) + "]"
    return f"[[mutant]]\n{texts}{line}\n"


def _literal(text: str) -> str:
    """The string of TOML that is easiest to read."""
    if "\n" in text and "'''" not in text:
        return f"'''\n{text}'''"
    if '"' not in text and "\\" not in text and "\n" not in text:
        return f'"{text}"'
    return f"'{text}'" if "'" not in text and "\n" not in text else json.dumps(text, ensure_ascii=False)
