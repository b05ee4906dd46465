"""The catalogue of seeded bugs stays true to the source; `make mutants` shows that every one is killed."""

import ast
import os
import subprocess
import sys
from functools import cache

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, DoesNotApply, Mutant
from tests.rotation import TURN_VARIABLE, WHOLE_VARIABLE


@cache
def program(path: str) -> str:
    """A file as the parser sees it."""
    return ast.dump(ast.parse((ROOT / path).read_text()))


@cache
def functions(path: str) -> frozenset[str]:
    """The names of the functions of a file."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_bug_can_still_be_made_and_its_test_exists(mutant: Mutant) -> None:
    """The text stands exactly once, the result is another program that still parses, and the killer is a test."""
    assert ast.dump(ast.parse(mutant.applied(ROOT))) != program(mutant.file)
    path, _, function = mutant.killed_by.partition("::")
    assert function.partition("[")[0].rpartition("::")[2] in functions(path)


@pytest.mark.slow
def test_the_cases_that_kill_are_of_turn_0() -> None:
    """Where a run takes some cases of a test, `make mutants` takes those of turn 0, and no other case is there."""
    cases = sorted({mutant.killed_by for mutant in MUTANTS if "[" in mutant.killed_by})
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", *cases]
    environment = os.environ | {TURN_VARIABLE: "0", WHOLE_VARIABLE: "0"}
    collected = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (collected.returncode, [line for line in collected.stderr.splitlines() if "not found" in line]) == (0, [])


def test_names_are_distinct_and_many() -> None:
    """One name, one bug; every one tells what it would have done."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25
    assert all(mutant.incident.endswith(".") for mutant in MUTANTS)


def test_a_source_that_has_moved_on_is_noticed() -> None:
    """A bug that can no longer be made must not count as killed."""
    gone = Mutant(name="gone", incident="x.", file="service/core/charge.py", find="no such text", put="", killed_by="")
    with pytest.raises(DoesNotApply):
        gone.applied(ROOT)
