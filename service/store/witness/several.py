"""Several witnesses as one: the first must know before anything leaves, the others help when it is lost."""

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from service.workflows.incidents import report_incident
from service.workflows.ports import Witness, WitnessRecord, WitnessUnavailable

_REST_S: Final = 5.0

Answer = TypeVar("Answer")


class SeveralWitnesses:
    """The port's Witness. What any of them has seen counts; a secondary that fails is left alone for a while."""

    def __init__(
        self, primary: Witness, secondaries: Sequence[Witness], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` counts seconds."""
        self._primary, self._secondaries, self._clock = primary, secondaries, clock
        self._resting_until: dict[int, float] = {}

    def history(self, dataset: str) -> list[WitnessRecord]:
        records = set(self._primary.history(dataset))
        for answer in self._ask(lambda witness: witness.history(dataset)):
            records.update(answer)
        return sorted(records, key=lambda record: record.position)

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        before = [self._primary.write(dataset, record)]
        before += self._ask(lambda witness: witness.write(dataset, record))
        return max((each for each in before if each is not None), key=lambda each: each.position, default=None)

    def _ask(self, question: Callable[[Witness], Answer]) -> list[Answer]:
        """What those secondaries say that answer."""
        answers = []
        for place, witness in enumerate(self._secondaries):
            if self._clock() < self._resting_until.get(place, 0.0):
                continue
            try:
                answers.append(question(witness))
            except WitnessUnavailable as fault:
                self._resting_until[place] = self._clock() + _REST_S
                report_incident(fault, f"secondary witness {place}")
        return answers
