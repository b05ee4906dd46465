"""The port of one dataset's transaction: reads, and the changes that its commit makes durable together."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.ledger.model.amendments import Amendment, OwnPart, Rewritten
from service.ledger.model.journal import JournalAct, UploadRecord
from service.ledger.model.ledger_entry import EntryRecord, LedgerEntry, PublicEntry
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.rows import (
    EVERY_ENTRY,
    ActRecord,
    Address,
    AnswerRecord,
    AskedErasure,
    Codes,
    DatasetRecord,
    EarlierRegistration,
    EntryFilter,
    Head,
    Known,
    OwnAccount,
    OwnCharge,
    SlotsInUse,
    StoredPage,
)
from service.query.keys import Key
from service.query.schema import Schema


class Appending(Protocol):
    """The way in which queries are answered: entries and answers are appended, and made durable by one commit."""

    @property
    def head(self) -> Head:
        """The head as read or assumed, and moved along by what is written."""

    @property
    def known(self) -> Known:
        """The stored answers and entries of the queries that it was opened for; nothing where they must be new."""

    def append(
        self,
        entries: Sequence[LedgerEntry],
        answers: Sequence[AnswerRecord],
        worst_cases: Mapping[UUID, int],
        parameters: Sequence[KeptParameters] = (),
    ) -> None:
        """Append entries and answers, add `worst_cases` units per analyst, and move the head (fenced).

        Parameters are kept unless those of their analyst and hash are.

        A store may send all of it with the commit; a head that has moved meanwhile then shows as CommitUnclear.
        """

    def commit(self) -> None:
        """Make it durable. Raises CommitRejected, and CommitUnclear when no clear reply came."""


class Transaction(Appending, Protocol):
    """One dataset at one instant. Locked transactions are serial; leaving without `commit` undoes everything."""

    def registration(self) -> DatasetRecord:
        """The dataset's registration as it stands."""

    def earlier_registrations(self) -> list[EarlierRegistration]:
        """The registrations that extensions have replaced, by version."""

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        """Entries with seq > `after`, in order, at most `limit`."""

    def entry_records(
        self, *, before: int, limit: int, bytes_max: int, only: EntryFilter = EVERY_ENTRY, first: int = 0
    ) -> list[EntryRecord]:
        """Entries with seq < `before` that `only` admits, newest first, without charges and values.

        At most `limit`, and none that comes after `bytes_max` bytes of canonical queries. Where `only` does not admit
        every entry, those from `first` on alone are looked at.
        """

    def entries_reach(self, *, before: int, limit: int, bytes_max: int) -> int:
        """The lowest sequence of the `limit` entries before `before`, or of those with `bytes_max` bytes of queries.

        1 where there is none. No query is read.
        """

    def entry_sizes(self, *, before: int, limit: int) -> list[tuple[int, int]]:
        """(sequence, bytes of charges, pieces and values) of at most `limit` entries with seq < `before`, newest first.

        The contents are not read.
        """

    def own_charges(self, slot: int, *, before: int, limit: int, bytes_max: int) -> list[OwnCharge]:
        """The entries as they concern one slot; nothing of any other slot leaves the store."""

    def account_of(self, slot: int) -> OwnAccount:
        """One slot's account; what is spent as the page and the entries since give it."""

    def burns(self) -> list[LedgerEntry]:
        """Every entry of the kind `burn`, in order."""

    def ticks(self) -> list[PublicEntry]:
        """Every tick of the monitor, in order."""

    def last_tick(self, *, up_to: int) -> int:
        """The number of the last tick with seq <= `up_to`; 0 if there is none."""

    def has_other_noise(self) -> bool:
        """Tell whether the noise of any entry is not a Gaussian."""

    def hashes(self, seqs: Sequence[int]) -> dict[int, bytes]:
        """The hashes of the entries among `seqs`, by sequence."""

    def pages(self) -> Iterator[StoredPage]:
        """The stored pages by number; a missing one is all zero, at sequence 0."""

    def answers(self) -> Iterator[AnswerRecord]:
        """Every stored answer, by the sequence that it shows; other reads may run meanwhile."""

    def parameters(self, principal_id: UUID, sha256: str) -> KeptParameters | None:
        """The parameters of one analyst in this dataset by their hash; no other analyst's."""

    def parameters_stored(self, principal_id: UUID, hashes: Sequence[str]) -> tuple[int, set[str]]:
        """The bytes that all parameters of one analyst in this dataset count as, and those of `hashes` that are stored.

        No numbers are read.
        """

    def worst_cases(self) -> dict[UUID, int]:
        """The most that the queries of each analyst may have cost an individual, in units, as stored."""

    def acts(self, *, after: int) -> list[JournalAct]:
        """The acts of the journal with number > `after`, in order."""

    def acts_of(self, *kinds: str) -> list[JournalAct]:
        """The acts of these kinds, in order."""

    def acts_on(self, slot: int, *kinds: str) -> list[JournalAct]:
        """The acts of these kinds that name one slot, in order."""

    def erasures_asked(self, *, after: int = 0, limit: int | None = None) -> list[AskedErasure]:
        """The acts with number > `after` by which individuals ask to be erased, in order, `limit` at most."""

    def act_records(self, *, before: int, limit: int, bytes_max: int) -> list[ActRecord]:
        """The acts with number < `before`, newest first.

        At most `limit`, and none that comes after `bytes_max` bytes of keys.
        """

    def pruned_totals(self) -> Iterator[StoredPage]:
        """The totals that the last pruning kept, by page; none where nothing is pruned."""

    def amendments(self) -> Iterator[Amendment]:
        """Every amendment, by sequence, number and erasure."""

    def own_parts(self, slot: int, *, after: int, to: int) -> Iterator[OwnPart]:
        """The part of each entry with `after` < seq <= `to` in which a slot can stand; nothing else of it is read."""

    def individuals(self, *, of: NDArray[np.int64] | None = None) -> SlotsInUse:
        """Every account of the dataset, or those of some slots (n,), which increase."""

    def records(self, table: str, *, of: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], Codes]:
        """(slots (n,), codes by column (n,)) of a table, in any order; of all slots, or of some, which increase."""

    def slots_of(self, keys: Sequence[Key]) -> NDArray[np.int64]:
        """The slot of each key, -1 where no individual present has it."""

    def are_plain_forms(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Tell of each text (n,) if it is the plain form of the key of an individual present, and not that key."""

    def slots_of_tombstones(self, tombstones: Sequence[bytes]) -> NDArray[np.int64]:
        """The slot of each erased individual by tombstone, -1 where unknown."""

    def upload_at(self, address: Address) -> UploadRecord | None:
        """The upload that was stored under an idempotency key of a principal."""

    def has_tombstones(self) -> bool:
        """Tell whether any individual was ever erased."""

    def keys_of(self, *, after_slot: int, limit: int, bytes_max: int) -> list[tuple[int, Key]]:
        """(slot, key) of people present with slot > `after_slot`, in slot order.

        At most `limit`, and none that comes after `bytes_max` bytes of keys.
        """

    def add_individuals(
        self,
        slots: NDArray[np.int64],
        keys: Sequence[Key],
        limits: NDArray[np.int64],
        plain_forms: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """New people in new slots; a slot that holds a tombstone is filled again.

        Such a slot keeps what it has spent, and its pause. `plain_forms` are those of the keys at some places, which
        are not the keys themselves.
        """

    def add_records(self, table: str, slots: NDArray[np.int64], codes: Codes) -> None:
        """Rows of a table."""

    def keep_upload(self, upload: UploadRecord) -> None:
        """Keep an upload under its key, which no other has."""

    def delete_records(self, slot: int, *, table: str | None = None) -> None:
        """Delete an individual's record and rows, or those of one table."""

    def delete_all_records(self) -> None:
        """Delete every row of every table; accounts and keys stay."""

    def extend_tables(self, schema: Schema) -> None:
        """Make room for the columns and tables of an extended schema; what there is of new columns is NULL."""

    def set_registration(self, record: DatasetRecord) -> None:
        """Put a registration, extended or archived, in the place of the one that stands.

        The one before is kept up to the head's sequence where capacity or schema changes.
        """

    def erase(self, slot: int, tombstone: bytes) -> None:
        """Delete what is left of an individual's record and rows; the slot keeps its account under the tombstone.

        The individual's principals are revoked with it, and keep neither its key nor a name.
        """

    def amend(self, parts: Sequence[Rewritten]) -> None:
        """Put parts of entries in the place of those that are there, and note each amendment."""

    def keep_totals(self, pages: Sequence[StoredPage]) -> None:
        """Keep totals in the place of those of an earlier pruning."""

    def prune(self, seq: int) -> None:
        """Move `pruned_seq` (fenced): from now on entries up to it are read without charges and pieces."""

    def drop_quantities(self, *, after: int, to: int) -> None:
        """Drop charges and pieces of the entries with `after` < seq <= `to`; none of them is beyond `pruned_seq`."""

    def set_limit(self, slot: int, limit_units: int) -> None:
        """Lower one individual's limit."""

    def set_paused(self, slot: int, *, paused: bool) -> None:
        """Say whether one individual has paused."""

    def journal(
        self, act: str, detail: Mapping[str, object], *, slots: int | None = None, epoch: int | None = None
    ) -> None:
        """Chain a curator's or individual's act; moves `data_version`, and `slots` or `epoch` when given."""

    def fence_off(self, fence: int, joining_units: int) -> None:
        """Raise the fence, so that a process that read the head before appends no more, and `joining_units`."""


class LongAct(Transaction, Protocol):
    """A transaction that writes records while queries are answered: the dataset's row is not locked before `lock`.

    From its beginning to its end no other changes records, so that slots can be given out; limits, epochs and queries
    go on.
    """

    def hasten(self) -> None:
        """Flush the writes so far to the disk, so that little is left for the commit."""

    def lock(self) -> None:
        """Lock the dataset and read its head again. From here on this is a locked transaction; call it once."""


class ConditionalAppend(Appending, Protocol):
    """Entries for a dataset whose head is assumed to be known: no lock is held before they are sent.

    Committed in one round trip, and only if the head's sequence, hash, fence, epoch and data version are still those,
    no key that was asked is taken, and no query that may be reused was answered in this epoch. A store may refuse to
    leave a key that was asked without an answer. At least one entry is appended; `commit` raises HeadMoved too, when an
    assumption does not hold, or nothing was appended.
    """
