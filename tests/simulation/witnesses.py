"""Two witnesses as the replicas see them: the second records at once, the first is a file that must be synced.

A replica may die between any two of: the second has the record, the first can be read, the first is synced.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from types import TracebackType

from service.ledger.model.rows import WitnessRecord
from service.ledger.ports.witness import WitnessUnavailable
from tests.memory.cache import MemoryWitness
from tests.simulation.scheduler import Scheduler

AWAY = 0.05
DEATH = 0.05


class FirstWitness(MemoryWitness):
    """Records can be read before they are synced. At random it is unavailable, or a replica dies during a write."""

    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.is_well = False
        self.doomed: list[str] = []  # replicas that die in this step
        self._scheduler, self._random = scheduler, random
        self._synced: dict[str, int] = {}

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        self._may_die("unwritten")
        if not self.is_well and self._random.random() < AWAY:
            self.counts["away"] += 1
            raise WitnessUnavailable
        before = super().write(dataset, record)
        self._may_die("unsynced")
        self._synced[dataset] = max(self._synced.get(dataset, 0), self.kept[dataset][-1].seq)
        return before

    def synced(self) -> int:
        """The sequence that a power cut would leave in this witness."""
        return max(self._synced.values(), default=0)

    def _may_die(self, when: str) -> None:
        self._scheduler.pause()
        task = self._scheduler.current
        if task is not None and not self.is_well and self._random.random() < DEATH:
            self.counts[when] += 1
            self.doomed.append(task.place)
            self._scheduler.pause(lambda: False)


class SecondWitness(MemoryWitness):
    """Records sent to it arrive even if the sender dies."""

    def begin(self, dataset: str, record: WitnessRecord) -> Callable[[], WitnessRecord | None]:
        before = self.write(dataset, record)
        return lambda: before


class SteppedLock:
    """A lock for tasks: a task that finds it held lets other tasks run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._is_held = scheduler, False

    def __enter__(self) -> None:
        while self._is_held:
            self._scheduler.pause(lambda: not self._is_held)
        self._is_held = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_held = False
