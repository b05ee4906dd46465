"""The port of the witness, which remembers each dataset's head outside the database."""

from typing import Protocol

from service.ledger.model.rows import WitnessRecord


class WitnessUnavailable(Exception):
    """The witness could not be read, or a record may not survive a power cut."""


class Witness(Protocol):
    """The farthest head of each dataset, kept outside the database. `dataset` is its `witness_name`."""

    def history(self, dataset: str) -> list[WitnessRecord]:
        """The records still held, in order of position; empty when nothing is known, which never means zero.

        Raises WitnessUnavailable.
        """

    def names(self) -> list[str]:
        """The datasets of which records are held, as far as this witness can tell; one that only helps may tell none.

        Raises WitnessUnavailable.
        """

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        """Keep a record, durably, unless one as far or farther is held. Returns the farthest held before.

        Raises WitnessUnavailable.
        """

    def check(self) -> None:
        """Look whether the records that this process has seen are in their place and could be added to.

        Raises WitnessUnavailable.
        """
