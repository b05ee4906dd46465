"""The port of one dataset's transaction: reads, and the changes that its commit makes durable together."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol
from uuid import UUID

from service.arrays import Integers, Mask
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
    ColumnCodes,
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
        """The entries with seq < `before` that `only` admits, newest first, without charges and values.

        It returns at most `limit`, and none after the one that brings the canonical queries to `bytes_max` bytes. Where
        `only` does not admit every entry, entries before `first` are not looked at.
        """

    def entries_reach(self, *, before: int, limit: int, bytes_max: int) -> int:
        """The lowest sequence of the `limit` entries before `before`, or of fewer if these fill `bytes_max` bytes.

        Counted are the bytes of canonical queries, though no query is read. Returns 1 where there is no entry.
        """

    def entry_sizes(self, *, before: int, limit: int) -> list[tuple[int, int]]:
        """(sequence, bytes of charges, pieces and values) of at most `limit` entries with seq < `before`, newest first.

        The contents are not read.
        """

    def own_charges(self, slot: int, *, before: int, limit: int, bytes_max: int) -> list[OwnCharge]:
        """The entries as they concern one slot, newest first. Nothing of other slots leaves the store."""

    def account_of(self, slot: int) -> OwnAccount:
        """One slot's account. What is spent comes from the stored page and the entries since."""

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
        """The stored pages by number. A page that is missing is all zero, at sequence 0."""

    def answers(self) -> Iterator[AnswerRecord]:
        """Every stored answer, by the sequence of its entry. Other reads may run during the iteration."""

    def parameters(self, principal_id: UUID, sha256: str) -> KeptParameters | None:
        """The parameters of one analyst in this dataset with this hash; None if that analyst has none."""

    def parameters_stored(self, principal_id: UUID, hashes: Sequence[str]) -> tuple[int, set[str]]:
        """The bytes that all parameters of one analyst in this dataset count as, and which of `hashes` are stored.

        No numbers are read.
        """

    def worst_cases(self) -> dict[UUID, int]:
        """The sum of the worst cases of each analyst's queries, in units, as stored."""

    def acts(self, *, after: int) -> list[JournalAct]:
        """The acts of the journal with number > `after`, in order."""

    def acts_of(self, *kinds: str) -> list[JournalAct]:
        """The acts of these kinds, in order."""

    def acts_on(self, slot: int, *kinds: str) -> list[JournalAct]:
        """The acts of these kinds that name one slot, in order."""

    def erasures_asked(self, *, after: int = 0, limit: int | None = None) -> list[AskedErasure]:
        """The acts with number > `after` by which individuals ask to be erased, in order, at most `limit`."""

    def act_records(self, *, before: int, limit: int, bytes_max: int) -> list[ActRecord]:
        """The acts with number < `before`, newest first.

        It returns at most `limit`, and none after the one that brings the keys to `bytes_max` bytes.
        """

    def pruned_totals(self) -> Iterator[StoredPage]:
        """The totals that the last pruning kept, by page; empty where nothing is pruned."""

    def amendments(self) -> Iterator[Amendment]:
        """Every amendment, by sequence, number and erasure."""

    def own_parts(self, slot: int, *, after: int, to: int) -> Iterator[OwnPart]:
        """The piece of each entry with `after` < seq <= `to` in which the slot would stand.

        No other pieces are read.
        """

    def individuals(self, *, of: Integers | None = None) -> SlotsInUse:
        """Every account of the dataset, or those of the slots `of` (n,), which increase."""

    def records(self, table: str, *, of: Integers | None = None) -> tuple[Integers, ColumnCodes]:
        """(slots (n,), codes by column (n,)) of a table, in any order, for all slots or for the increasing `of`."""

    def slots_of(self, keys: Sequence[Key]) -> Integers:
        """The slot of each key; -1 where no present individual has the key."""

    def are_plain_forms(self, texts: Sequence[str]) -> Mask:
        """Tell of each text (n,) whether it is the plain form of a present individual's key without being that key."""

    def slots_of_tombstones(self, tombstones: Sequence[bytes]) -> Integers:
        """The slot of each erased individual by tombstone; -1 for an unknown tombstone."""

    def upload_at(self, address: Address) -> UploadRecord | None:
        """The upload that was stored under an idempotency key of a principal."""

    def has_tombstones(self) -> bool:
        """Tell whether any individual was ever erased."""

    def keys_of(self, *, after_slot: int, limit: int, bytes_max: int) -> list[tuple[int, Key]]:
        """(slot, key) of the individuals present with slot > `after_slot`, in slot order.

        It returns at most `limit`, and none after the one that brings the keys to `bytes_max` bytes.
        """

    def add_individuals(
        self,
        slots: Integers,
        keys: Sequence[Key],
        limits: Integers,
        plain_forms: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Add individuals in new slots, or again in the slots of their tombstones.

        The slot of a tombstone keeps its spent total and its pause. `plain_forms` has, by place, the plain form of each
        key that differs from its plain form.
        """

    def add_records(self, table: str, slots: Integers, codes: ColumnCodes) -> None:
        """Add rows to a table."""

    def keep_upload(self, upload: UploadRecord) -> None:
        """Keep an upload under its idempotency key, under which no other upload is kept."""

    def delete_records(self, slot: int, *, table: str | None = None) -> None:
        """Delete an individual's record and rows, or only the rows of `table`."""

    def delete_all_records(self) -> None:
        """Delete every row of every table; accounts and keys stay."""

    def extend_tables(self, schema: Schema) -> None:
        """Make room for the columns and tables of an extended schema; existing rows have NULL in new columns."""

    def set_registration(self, record: DatasetRecord) -> None:
        """Put a registration, extended or archived, in the place of the present one.

        Where capacity or schema changes, the earlier registration is kept as the one up to the head's sequence.
        """

    def erase(self, slot: int, tombstone: bytes) -> None:
        """Delete what is left of an individual's record and rows; the slot keeps its account under the tombstone.

        The individual's principals are revoked, and lose its key and their names.
        """

    def amend(self, parts: Sequence[Rewritten]) -> None:
        """Put amended pieces of entries in the place of the stored ones, and keep each amendment."""

    def keep_totals(self, pages: Sequence[StoredPage]) -> None:
        """Keep these totals instead of those of an earlier pruning."""

    def prune(self, seq: int) -> None:
        """Move `pruned_seq` (fenced): from now on, entries up to it are read without charges and pieces."""

    def drop_quantities(self, *, after: int, to: int) -> None:
        """Drop charges and pieces of the entries with `after` < seq <= `to`, all of them at or before `pruned_seq`."""

    def set_limit(self, slot: int, limit_units: int) -> None:
        """Lower one individual's limit."""

    def set_paused(self, slot: int, *, paused: bool) -> None:
        """Note that an individual has paused, or that its pause has ended."""

    def journal(
        self, act: str, detail: Mapping[str, object], *, slots: int | None = None, epoch: int | None = None
    ) -> None:
        """Append an act to the journal. This moves `data_version`, and `slots` or `epoch` when given."""

    def fence_off(self, fence: int, joining_units: int) -> None:
        """Raise the fence and `joining_units`. A process that read the head before can then append nothing."""


class LongAct(Transaction, Protocol):
    """A transaction that writes records while queries are answered: the dataset's row is not locked before `lock`.

    While it lasts, no other transaction changes records, so that it can hand out slots. Limits, epochs and queries go
    on.
    """

    def hasten(self) -> None:
        """Flush the writes so far to the disk, so that little is left for the commit."""

    def lock(self) -> None:
        """Lock the dataset and read its head again; call it once. From here on this is a locked transaction."""


class ConditionalAppend(Appending, Protocol):
    """Entries for a dataset whose head is assumed to be known: no lock is held before they are sent.

    Committed in one round trip, and only if the head's sequence, hash, fence, epoch and data version are still those,
    no key that was asked is taken, and no query that may be reused was answered in this epoch. A store may refuse to
    leave a key that was asked without an answer. At least one entry is appended; `commit` raises HeadMoved too, when an
    assumption does not hold, or nothing was appended.
    """
