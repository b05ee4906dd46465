"""What the in-memory store keeps of each dataset, and what is put in the place of what.

A transaction drafts a dataset and puts the draft in its place; pages of a checkpoint are written beside transactions.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.workflows.ledger import LedgerEntry
from service.workflows.records import Address, AnswerRecord, Checkpoint, Codes, DatasetRecord, Head, StoredPage

Rows = tuple[NDArray[np.int64], Codes]


@dataclass(slots=True)
class Person:
    """One individual: a limit in units, and a key, or a tombstone once erased."""

    limit_units: int
    key: str | None = None
    tombstone: bytes | None = None


@dataclass(slots=True)
class Dataset:
    """Everything of one dataset; drafts share the values, which nobody changes in place."""

    record: DatasetRecord
    head: Head
    entries: tuple[LedgerEntry, ...] = ()
    answers: dict[Address, AnswerRecord] = field(default_factory=dict)
    worst_cases: dict[UUID, int] = field(default_factory=dict)
    people: dict[int, Person] = field(default_factory=dict)
    records: dict[str, tuple[Rows, ...]] = field(default_factory=dict)
    pages: Mapping[int, StoredPage] = field(default_factory=dict)
    journal: tuple[tuple[str, Mapping[str, object]], ...] = ()

    def draft(self) -> "Dataset":
        """A copy to write on."""
        return replace(
            self,
            answers=dict(self.answers),
            worst_cases=dict(self.worst_cases),
            people={slot: replace(person) for slot, person in self.people.items()},
            records=dict(self.records),
        )

    def has_come_to(self, checkpoint: Checkpoint) -> bool:
        """Whether the ledger has the checkpoint's entry."""
        seq = checkpoint.seq
        return 0 < seq <= len(self.entries) and self.entries[seq - 1].hash == checkpoint.hash


class Kept:
    """Every dataset as last committed, by id. Thread-safe."""

    def __init__(self) -> None:
        """Keep none."""
        self.kept: dict[int, Dataset] = {}
        self._door = threading.Lock()

    def keep(self, dataset_id: int, draft: Dataset) -> None:
        """Put a draft in the place of what it was drafted from, whose pages may have been written meanwhile."""
        with self._door:
            self.kept[dataset_id] = replace(draft, pages=self.kept[dataset_id].pages)

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        """Keep a page of a checkpoint whose entry the ledger has, unless it is kept as of later already."""
        with self._door:
            kept = self.kept[dataset_id]
            held = kept.pages.get(page)
            if kept.has_come_to(checkpoint) and (held is None or held.seq < checkpoint.seq):
                spent = checkpoint.pages[page].copy()
                stored = StoredPage(number=page, seq=checkpoint.seq, spent=spent)
                self.kept[dataset_id] = replace(kept, pages={**kept.pages, page: stored})

    def move_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        """As `finish_checkpoint`, for whoever has the dataset's lock."""
        with self._door:
            kept = self.kept[dataset_id]
            stored = [kept.pages[page].seq if page in kept.pages else 0 for page in checkpoint.pages]
            is_between = checkpoint.since <= kept.head.checkpoint_seq < checkpoint.seq
            if not is_between or min(stored, default=checkpoint.seq) < checkpoint.seq:
                return False
            if not kept.has_come_to(checkpoint):
                return False
            self.kept[dataset_id] = replace(kept, head=replace(kept.head, checkpoint_seq=checkpoint.seq))
            return True
