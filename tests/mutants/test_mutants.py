"""The catalogue of seeded bugs stays true to the source; `make mutants` shows that every one is killed."""

import ast
import os
import subprocess
import sys
from functools import cache

import pytest

from tests.mutants import tables
from tests.mutants.mutant import ROOT, Mutant
from tests.rotation import TURN_VARIABLE, WHOLE_VARIABLE

MUTANTS = tables.read()


@cache
def program(path: str) -> str:
    """A file as the parser sees it."""
    return ast.dump(ast.parse((ROOT / path).read_text()))


@cache
def functions(path: str) -> frozenset[str]:
    """The names of the functions of a file."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def settled() -> list[Mutant]:
    """The mutants, each with the file in which its function is now."""
    return [mutant.followed(ROOT) for mutant in MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_bug_can_still_be_made_and_its_tests_exist(mutant: Mutant) -> None:
    """The statement stands exactly once, the result is another program that still parses, and the killers are there."""
    file, text = mutant.applied(ROOT)

    if file.endswith(".py"):
        assert ast.dump(ast.parse(text)) != program(file)
    for node in mutant.killed_by:
        path, _, function = node.partition("::")
        assert (ROOT / path).is_file()
        assert not function or function.partition("[")[0].rpartition("::")[2] in functions(path)


@pytest.mark.parametrize("name", sorted({f"{tables.room(mutant.file)}.toml" for mutant in MUTANTS}))
def test_tables_are_sorted_and_name_the_file_of_today(name: str) -> None:
    """A function that has moved is followed; `make mutants ARGS=settle` writes where it is now."""
    moved = [mutant.where for mutant, now in zip(MUTANTS, settled(), strict=True) if mutant != now]

    assert moved == []
    assert (tables.FOLDER / name).read_text() == tables.written(settled())[name]


def test_the_cases_that_kill_are_of_turn_0() -> None:
    """If a run takes some cases of a test, `make mutants` takes those of turn 0, and no other case is there."""
    cases = sorted({node for mutant in MUTANTS for node in mutant.killed_by if "[" in node})
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", *cases]
    environment = os.environ | {TURN_VARIABLE: "0", WHOLE_VARIABLE: "0"}
    collected = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (collected.returncode, [line for line in collected.stderr.splitlines() if "not found" in line]) == (0, [])


def test_every_bug_tells_what_it_would_have_done() -> None:
    """An incident is a whole sentence."""
    assert len(MUTANTS) >= 25
    assert all(mutant.incident.endswith(".") for mutant in MUTANTS)
