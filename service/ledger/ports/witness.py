"""The port of the witness, which remembers each dataset's head outside the database."""

from typing import Protocol

from service.ledger.model.rows import WitnessRecord


class WitnessUnavailable(Exception):
    """The witness could not be read, or a record may not survive a power cut."""


class Witness(Protocol):
    """The farthest head of each dataset, kept outside the database. `dataset` is the dataset's `witness_name`."""

    def history(self, dataset: str) -> list[WitnessRecord]:
        """The records still held, in order of position. An empty list means that nothing is known, never position zero.

        Raises WitnessUnavailable.
        """

    def names(self) -> list[str]:
        """The datasets of which records are held. A witness that is only a second copy may return none.

        Raises WitnessUnavailable.
        """

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        """Keep a record, durably, unless one as far or farther is held. Returns the farthest record held before.

        Raises WitnessUnavailable.
        """

    def check(self) -> None:
        """Check that the records which this process has seen are in place, and that records can be added.

        Raises WitnessUnavailable.
        """
