"""The inputs that the laws of a run have drawn, as a digest for each test: `pytest --record-inputs FOLDER`.

Every run of a tree draws the same inputs: `make surroundings ARGS="--only repeated"` compares three runs.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis.internal import observability
from hypothesis.internal.conjecture.choice import ChoiceNode


class Recorder:
    """Writes a file with the digest of what hypothesis drew for each test that ran, in the order of drawing."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._digests: defaultdict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
        self._test = ""
        observability.OBSERVABILITY_COLLECT_COVERAGE = False
        observability.OBSERVABILITY_CHOICES = True
        observability.add_observability_callback(self.observe, all_threads=True)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin the digest of a test; one that draws nothing has the digest of nothing."""
        self._test = item.nodeid
        self._digests[self._test].update(b"")

    def observe(self, observation: observability.Observation, _thread_id: int) -> None:
        """Add the choices of one example of the present test."""
        if isinstance(observation, observability.TestCaseObservation):
            self.add(observation.metadata.choice_nodes or ())

    def add(self, choices: Iterable[ChoiceNode]) -> None:
        """Add choices to the digest of the present test."""
        drawn = repr([(choice.type, choice.value) for choice in choices])
        self._digests[self._test].update(drawn.encode("utf-8", "surrogatepass"))

    def pytest_sessionfinish(self) -> None:
        """Write the digests, and observe no longer."""
        observability.remove_observability_callback(self.observe)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({test: digest.hexdigest() for test, digest in self._digests.items()}))


def recorded(folder: Path) -> dict[str, str]:
    """The digest of each test of a run, whichever of its processes ran it."""
    digests: dict[str, str] = {}
    for file in sorted(folder.glob("*.json")):
        digests |= json.loads(file.read_text())
    return digests
