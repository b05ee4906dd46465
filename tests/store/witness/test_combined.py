"""Several witnesses: the farthest counts, the first must know, the others may fail."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from service.ledger.model.rows import WitnessRecord
from service.ledger.ports.witness import WitnessUnavailable
from service.store.witness.combined import CombinedWitness
from tests.memory.cache import MemoryWitness

DATASET = "survey-" + "0f" * 32


class FailingWitness(MemoryWitness):
    """A witness that is away while `is_away`, and counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.asked = 0

    def history(self, dataset: str) -> list[WitnessRecord]:
        self._ask()
        return super().history(dataset)

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        self._ask()
        return super().write(dataset, record)

    def _ask(self) -> None:
        self.asked += 1
        if self.is_away:
            raise WitnessUnavailable


def at(seq: int) -> WitnessRecord:
    """A record."""
    return WitnessRecord(fence=1, seq=seq, acts=0, slots=0, worst_case_total_units=seq, hash=bytes(32))


def test_the_farthest_of_all_counts() -> None:
    """On reading and on writing: a lost first witness is known from the second."""
    first, second = MemoryWitness(), MemoryWitness()
    first.write(DATASET, at(3))
    second.write(DATASET, at(5))
    both = CombinedWitness(first, [second])
    assert both.history(DATASET) == [at(3), at(5)]
    assert both.write(DATASET, at(4)) == at(5)
    assert first.history(DATASET) == [at(3), at(4)]
    assert second.history(DATASET) == [at(5)]


def test_without_the_first_nothing_is_certain() -> None:
    """Neither reading nor writing goes on without it."""
    first, second = FailingWitness(), MemoryWitness()
    both = CombinedWitness(first, [second])
    first.is_away = True
    with pytest.raises(WitnessUnavailable):
        both.write(DATASET, at(1))
    with pytest.raises(WitnessUnavailable):
        both.history(DATASET)


def test_a_second_that_fails_is_left_alone_for_a_while() -> None:
    """It stops nothing, costs no time again and again, and helps again once it is back."""
    now = [0.0]
    first, second = MemoryWitness(), FailingWitness()
    both = CombinedWitness(first, [second], clock=lambda: now[0])
    second.is_away = True
    for seq in range(1, 9):
        both.write(DATASET, at(seq))
    assert second.asked == 1
    second.is_away = False
    now[0] = 5.0
    both.write(DATASET, at(9))
    assert (first.history(DATASET)[-1], second.history(DATASET)) == (at(9), [at(9)])


class Beginner(MemoryWitness):
    """Notes what is begun and finished, in a diary that it shares with the first witness."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__()
        self.diary = diary

    def begin(self, dataset: str, record: WitnessRecord) -> Callable[[], WitnessRecord | None]:
        self.diary.append("begun")

        def finish() -> WitnessRecord | None:
            self.diary.append("finished")
            return self.write(dataset, record)

        return finish


class First(FailingWitness):
    """Notes that it is written to."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__()
        self.diary = diary

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        self.diary.append("first")
        return super().write(dataset, record)


@pytest.mark.parametrize("is_away", [False, True])
def test_the_second_is_at_it_while_the_first_writes(is_away: bool) -> None:
    """And is awaited also when the first fails: its late reply must not meet the next query."""
    diary: list[str] = []
    first, second = First(diary), Beginner(diary)
    first.is_away = is_away
    with pytest.raises(WitnessUnavailable) if is_away else nullcontext():
        CombinedWitness(first, [second]).write(DATASET, at(1))
    assert diary == ["begun", "first", "finished"]
