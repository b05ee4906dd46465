"""The part of the costly repetitions that a run of the tests takes: another one for each commit, all in `make soak`.

Kills, cuts, races and simulated worlds are many, and a run takes some of them: which, follows from the commit, so that
a commit has one verdict and the next one begins with fresh seeds. A failure is reported with the turn that it came in.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

TURN_VARIABLE = "SPARING_TEST_TURN"
"""A number repeats the part of that turn; 0 is what `make mutants` takes."""
WHOLE_VARIABLE = "SPARING_TEST_WHOLE"
"""1 takes everything."""
TURNS = 1000

_GIT = Path(__file__).parents[1] / ".git"


def commit(git: Path = _GIT) -> str:
    """The commit that is checked out, read without git, which refuses a clone of another account; "" for none."""
    try:
        head = (git / "HEAD").read_text().strip()
        branch = head.removeprefix("ref: ")
        if branch == head:
            return head
        if (git / branch).exists():
            return (git / branch).read_text().strip()
        packed = (git / "packed-refs").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split()[0] for line in packed if line.endswith(f" {branch}")), "")


def turn_of(commit: str) -> int:
    """The turn of a commit."""
    return int(commit[:8] or "0", 16) % TURNS


TURN = int(os.environ.get(TURN_VARIABLE) or turn_of(commit()))
IS_WHOLE = os.environ.get(WHOLE_VARIABLE) == "1"


def times(part: int, whole: int) -> int:
    """How often something is repeated."""
    return whole if IS_WHOLE else part


def one_of(cases: Sequence[T], place: int = 0) -> list[T]:
    """One of the cases, the next one for the next turn and for the next place; or all of them."""
    return list(cases) if IS_WHOLE else [cases[(TURN + place) % len(cases)]]


def some_of(cases: Sequence[T], every: int) -> list[T]:
    """One of `every` cases, from another one on with the next turn; or all of them."""
    return list(cases) if IS_WHOLE else list(cases[TURN % every :: every])


def fresh(count: int) -> range:
    """Seeds of this turn that are of no other; of turn 0 the first ones."""
    return range(TURN * count, (TURN + 1) * count)
