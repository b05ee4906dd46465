"""Datasets as the in-memory store keeps them, and what is put in the place of what.

A transaction drafts a dataset and puts the draft in its place; pages of a checkpoint are written beside transactions.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate, takewhile
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.ledger.model.amendments import Amendment, Rewritten
from service.ledger.model.journal import TOUCHED, JournalAct, UploadRecord
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.long_answers import with_values, without_values
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.rows import (
    ERASED_NAME,
    ActRecord,
    Address,
    AnswerRecord,
    Checkpoint,
    ColumnCodes,
    DatasetRecord,
    EarlierRegistration,
    Head,
    PrincipalRecord,
    StoredPage,
)
from service.query.columns import DIGEST, coding_of
from service.query.keys import Key
from service.query.schema import BudgetColumn, Column, Schema, VectorColumn
from service.query.vector_columns import vector_coding

Rows = tuple[NDArray[np.int64], ColumnCodes]
Item = TypeVar("Item")


@dataclass(slots=True)
class Person:
    """One individual: a limit in units, a key, or a tombstone once erased, and whether a pause is on."""

    limit_units: int
    key: Key | None = None
    plain_form: str | None = None
    tombstone: bytes | None = None
    paused: bool = False


@dataclass(slots=True)
class Dataset:
    """Everything of one dataset; drafts share the values, which are never changed in place."""

    record: DatasetRecord
    head: Head
    entries: tuple[LedgerEntry, ...] = ()
    answers: dict[Address, AnswerRecord] = field(default_factory=dict)
    parameters: dict[tuple[UUID, str], KeptParameters] = field(default_factory=dict)
    worst_cases: dict[UUID, int] = field(default_factory=dict)
    people: dict[int, Person] = field(default_factory=dict)
    records: dict[str, tuple[Rows, ...]] = field(default_factory=dict)
    pages: Mapping[int, StoredPage] = field(default_factory=dict)
    journal: tuple[JournalAct, ...] = ()
    acted_at: tuple[datetime, ...] = ()
    amendments: tuple[Amendment, ...] = ()
    pruned_totals: tuple[StoredPage, ...] = ()
    uploads: dict[Address, UploadRecord] = field(default_factory=dict)
    earlier: tuple[EarlierRegistration, ...] = ()

    def draft(self) -> "Dataset":
        """A copy to write on."""
        return replace(
            self,
            answers=dict(self.answers),
            parameters=dict(self.parameters),
            worst_cases=dict(self.worst_cases),
            people={slot: replace(person) for slot, person in self.people.items()},
            records=dict(self.records),
            uploads=dict(self.uploads),
        )

    def keep_answer(self, answer: AnswerRecord) -> None:
        """Keep an answer; a long one without its numbers."""
        self.answers[answer.principal_id, answer.key] = replace(answer, body=without_values(answer.body))

    def whole(self, answer: AnswerRecord) -> AnswerRecord:
        """A kept answer with the numbers of the entry that it shows."""
        entry = self.entries[answer.seq - 1] if answer.seq <= len(self.entries) else None
        if entry is None:
            return answer
        sigma, grid_log2, sigmas = entry.sigma, entry.grid_log2, entry.item_sigmas
        body = with_values(answer.body, entry.values, sigma=sigma, grid_log2=grid_log2, sigmas=sigmas)
        return replace(answer, body=body)

    def add_people(self, accounts: Iterable[tuple[int, Key, int]], plain_forms: Mapping[int, str]) -> None:
        """(slot, key, limit) of each; an individual that returns to a slot is paused if it was before."""
        for place, (slot, key, limit) in enumerate(accounts):
            before = self.people.get(slot)
            is_paused = before is not None and before.paused
            form = plain_forms.get(place)
            self.people[slot] = Person(limit_units=limit, key=key, plain_form=form, paused=is_paused)

    def add_records(self, table: str, slots: NDArray[np.int64], codes: ColumnCodes) -> None:
        """Rows of a table."""
        self.records[table] = (*self.records.get(table, ()), (slots, codes))

    def delete_records(self, slot: int, table: str | None = None) -> None:
        """Delete an individual's rows in every table, or in one."""
        for name, parts in self.records.items():
            if table in (None, name):
                self.records[name] = tuple(chosen(slots != slot, slots, codes) for slots, codes in parts)

    def extend_tables(self, schema: Schema) -> None:
        """Code the rows anew, as the columns of an extended schema are coded; new columns are NULL."""
        before = self.record.schema.tables
        for name, parts in self.records.items():
            columns = before[name].columns, schema.tables[name].columns
            self.records[name] = tuple((slots, recoded(codes, slots.size, *columns)) for slots, codes in parts)

    def set_registration(self, record: DatasetRecord) -> None:
        """Put a registration in the place of the one that stands, which is kept where it was extended."""
        old = self.record
        if record.version > old.version:
            kept = EarlierRegistration(
                version=old.version, until_seq=self.head.seq, capacity=old.capacity, schema=old.schema
            )
            self.earlier = (*self.earlier, kept)
        self.record = record

    def act_records(self) -> list[ActRecord]:
        """The acts, the newest first, each with the key of the individual it concerns."""
        return [_act_record(act, at, self.people) for act, at in zip(self.journal, self.acted_at, strict=True)][::-1]

    def erase(self, slot: int, tombstone: bytes) -> None:
        """Leave a tombstone for an individual."""
        self.delete_records(slot)
        person = self.people[slot]
        person.key, person.plain_form, person.tombstone = None, None, tombstone

    def amend(self, parts: Sequence[Rewritten]) -> None:
        """Put parts of entries in the place of others."""
        entries = list(self.entries)
        for part in parts:
            entry, amended = entries[part.amendment.seq - 1], part.piece
            pieces = tuple(amended if each.number == amended.number else each for each in entry.pieces)
            entries[part.amendment.seq - 1] = replace(entry, pieces=pieces)
        self.entries = tuple(entries)
        self.amendments += tuple(part.amendment for part in parts)

    def prune(self, seq: int) -> None:
        """Leave the entries up to `seq` without charges and pieces."""
        self.head = replace(self.head, pruned_seq=seq)
        self.entries = (*(each.pruned() for each in self.entries[:seq]), *self.entries[seq:])

    def has_come_to(self, checkpoint: Checkpoint) -> bool:
        """Tell whether the ledger has the checkpoint's entry."""
        seq = checkpoint.seq
        return 0 < seq <= len(self.entries) and self.entries[seq - 1].hash == checkpoint.hash


def _act_record(act: JournalAct, at: datetime, people: Mapping[int, Person]) -> ActRecord:
    person = None if act.act == "erase" else people.get(act.detail.get("slot", -1))
    return ActRecord(
        number=act.number,
        at_seq=act.at_seq,
        act=act.act,
        detail={name: told for name, told in act.detail.items() if name not in TOUCHED},
        at=at,
        key=None if person is None else person.key,
    )


def recoded(codes: ColumnCodes, count: int, before: Mapping[str, Column], after: Mapping[str, Column]) -> ColumnCodes:
    """The columns of `count` rows as an extended table codes them."""
    found = {DIGEST: codes[DIGEST]} if DIGEST in codes else {}
    for name, column in after.items():
        if isinstance(column, BudgetColumn):
            continue
        if isinstance(column, VectorColumn):
            found[name] = codes.get(name, vector_coding(column).missing(count))
            continue
        coding = coding_of(column)
        found[name] = np.full(count, coding.null_code, dtype=coding.dtype)
        if name in codes:
            is_null = codes[name] == coding_of(before[name]).null_code
            found[name][~is_null] = codes[name][~is_null]
    return found


def chosen(keep: NDArray[np.bool_], slots: NDArray[np.int64], codes: ColumnCodes) -> Rows:
    """Some of the rows."""
    return slots[keep], {name: values[keep] for name, values in codes.items()}


class Kept:
    """Every dataset as last committed, by id. Thread-safe."""

    def __init__(self) -> None:
        self.kept: dict[int, Dataset] = {}
        self.principal_records: dict[UUID, PrincipalRecord] = {}
        self.deleted: dict[str, int] = {}
        self._lock = threading.Lock()

    def keep(self, dataset_id: int, draft: Dataset) -> None:
        """Put a draft in the place of what it was drafted from, whose pages may have been written meanwhile."""
        with self._lock:
            self.kept[dataset_id] = replace(draft, pages=self.kept[dataset_id].pages)

    def forget_principals(self, dataset: str, key: str | None) -> None:
        """Revoke the principals of an individual that was erased; neither its key nor their names are kept."""
        for record in list(self.principal_records.values()):
            if key is not None and (record.dataset, record.individual) == (dataset, key):
                revoked_at = record.revoked_at or datetime.now(UTC)
                blank = replace(
                    record, revoked_at=revoked_at, individual=None, name=ERASED_NAME, organisation=None, purpose=None
                )
                self.principal_records[record.id] = blank

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        """Keep a page of a checkpoint whose entry the ledger has, unless it is kept as of later already."""
        with self._lock:
            kept = self.kept[dataset_id]
            held = kept.pages.get(page)
            if kept.has_come_to(checkpoint) and (held is None or held.seq < checkpoint.seq):
                stored = StoredPage(number=page, seq=checkpoint.seq, totals=checkpoint.pages[page])
                self.kept[dataset_id] = replace(kept, pages={**kept.pages, page: stored})

    def move_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        """Finish a checkpoint as `finish_checkpoint` does, for a caller that has the dataset's lock."""
        with self._lock:
            kept = self.kept[dataset_id]
            stored = [kept.pages[page].seq if page in kept.pages else 0 for page in checkpoint.pages]
            is_between = checkpoint.since <= kept.head.checkpoint_seq < checkpoint.seq
            if not is_between or min(stored, default=checkpoint.seq) < checkpoint.seq:
                return False
            if not kept.has_come_to(checkpoint):
                return False
            self.kept[dataset_id] = replace(kept, head=replace(kept.head, checkpoint_seq=checkpoint.seq))
            return True


def first_of(items: Sequence[Item], sizes: Sequence[int], *, bytes_max: int) -> list[Item]:
    """The items before which there are fewer than `bytes_max` bytes."""
    before = takewhile(lambda total: total < bytes_max, accumulate(sizes, initial=0))
    return [item for item, _ in zip(items, before, strict=False)]
