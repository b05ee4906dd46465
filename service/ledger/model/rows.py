"""Frozen values that go in and out of the ports: registrations, heads, answers, accounts, pages, rows of listings.

Units are units of 2^-40 rho.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

import rfc8785

from service.accounting.accountings import GAUSSIAN, Accounting
from service.accounting.monitor import Monitor
from service.arrays import Codes, Integers, Mask
from service.engine.pages import Counts, PageTotals
from service.ledger.model.errors import NotFound
from service.ledger.model.ledger_entry import Kind, PublicEntry
from service.ledger.model.pieces import OwnOutcome
from service.ledger.model.stated_guarantee import Guarantee
from service.ledger.model.views import Principal, Role, Rule
from service.query.keys import Key, KeyComparison, UnfitKey, compared
from service.query.schema import Schema

ColumnCodes = Mapping[str, Codes]
Address = tuple[UUID, str]


ERASED_NAME: Final = "erased"
"""The name that a principal gets when its individual is erased."""

_FENCE_FIRST: Final = 1
NO_KEY: Final = bytes(32)
"""The key hash of a principal that has no API key but signs in at an identity provider. No known key has this hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRecord(Principal):
    """A principal at rest; `key_hash` is HMAC-SHA256 of the secret, never the secret.

    After the erasure of its individual, a principal has neither `individual` nor its name. An analyst has
    `organisation` and `purpose`, which individuals are shown. From `expires_at` on the principal is unknown.
    """

    key_hash: bytes = field(repr=False)
    created_at: datetime
    revoked_at: datetime | None = None
    organisation: str | None = None
    purpose: str | None = None
    expires_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Tell whether the principal is accepted at `now`: it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRecord:
    """A registration as it stands. `budget_units` and `limit_floor_units` are in units: 2^-40 of its accounting's rho.

    An extension changes `capacity` and `schema` and counts up `version`; only archiving changes anything else.
    `instance` counts the datasets that have had this name, this one included. An archived dataset answers no new query
    and takes no rows.

    With a `monitor`, each limit is lower than stated by the monitor's reserve, `reserve_units`. Keys are digested under
    the `salt`, which is drawn at registration and shown to nobody. `keys` says how keys are compared.
    """

    id: int
    name: str
    guarantee: Guarantee
    budget_units: int
    limit_floor_units: int
    capacity: int
    rule: Rule
    schema: Schema
    genesis: bytes
    salt: bytes = field(repr=False)
    version: int = 1
    instance: int = 1
    is_archived: bool = False
    accounting: Accounting = GAUSSIAN
    keys: KeyComparison = "exact"
    monitor: Monitor | None = None
    reserve_units: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the reserve once, so that no answer has to."""
        object.__setattr__(self, "reserve_units", 0 if self.monitor is None else self.monitor.reserve_units)

    @property
    def floor_units(self) -> int:
        """The smallest limit that queries can meet: the floor less the monitor's reserve."""
        return self.limit_floor_units - self.reserve_units

    def key_of(self, text: str) -> Key:
        """The key under which the individual that `text` names is looked up.

        Raises NotFound if `text` cannot be a key.
        """
        try:
            return compared(text, self.keys)
        except UnfitKey:
            raise NotFound from None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRegistration:
    """The capacity and the schema that version `version` had up to the ledger entry `until_seq`."""

    version: int
    until_seq: int
    capacity: int
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The one mutable row of a dataset, locked while anything happens to it.

    `seq` and `hash` belong to the last ledger entry, and `journal_hash` to the last act. `epoch` is the public epoch,
    `fence` the writer's. `data_version` counts the acts of the journal, each of which may change records or limits.
    `slots` counts the slots handed out. `worst_case_units` sums the public worst cases. No page misses a charge up to
    `checkpoint_seq` (see `Checkpoint`). `joining_units` is subtracted from the limit of a new individual, whose earlier
    charges a restore may have forgotten. Entries up to `pruned_seq` have lost their charges and pieces.
    """

    seq: int
    hash: bytes
    epoch: int
    fence: int
    data_version: int
    slots: int
    worst_case_units: int
    checkpoint_seq: int
    joining_units: int = 0
    journal_hash: bytes = b""
    pruned_seq: int = 0

    @property
    def is_reconciled(self) -> bool:
        """Tell whether the dataset was ever reconciled after a restore, so that its figures may lack what was lost."""
        return self.fence > _FENCE_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessRecord:
    """The position of a dataset when an answer left the replica, kept outside the database.

    `acts` counts the acts of the journal, and `slots` the slots handed out. `worst_case_total_units` sums the public
    worst cases. Fence, sequence and acts never fall along one history, so that `position` puts the records in order.
    """

    fence: int
    seq: int
    acts: int
    slots: int
    worst_case_total_units: int
    hash: bytes

    @classmethod
    def of(cls, head: Head) -> Self:
        """The record that witnesses a head."""
        return cls(
            fence=head.fence,
            seq=head.seq,
            acts=head.data_version,
            slots=head.slots,
            worst_case_total_units=head.worst_case_units,
            hash=head.hash,
        )

    @property
    def position(self) -> tuple[int, int, int]:
        """(fence, sequence, acts), which is greater for every later record of one history."""
        return self.fence, self.seq, self.acts


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """A stored answer: the `body` that the request `key` of `principal_id` got.

    `seq` is the entry that the answer shows.

    The entry of a reused answer is older than the answer.
    """

    principal_id: UUID
    key: str
    request_hash: bytes
    seq: int
    query_id: UUID
    body: bytes
    at: datetime
    asked_form: bytes | None = None  # the canonical form of its request, where that is another than its entry's


class OwnAccount(NamedTuple):
    """One slot's limit and spent total in units, whether its individual has paused, and its counters.

    The counters are of the queries that charged the slot and of those that left it out. Burns are in neither.
    """

    limit: int
    spent: int
    paused: bool
    queries_charged: int
    queries_left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAnswer:
    """A stored answer as its own analyst fetches it by id, with the dataset's name."""

    dataset: str
    answer: AnswerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query as a store looks it up, by key and by hash. The hash is None when reuse is not wanted."""

    address: Address
    query_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A store's knowledge about the queries of a transaction, all read under the lock.

    `answers` has the stored answers by (principal, key). `reusable` has by query hash the newest entry of the current
    public epoch. `worst_cases` has by principal what its queries may have cost an individual so far, in units.
    """

    answers: Mapping[Address, AnswerRecord]
    reusable: Mapping[str, PublicEntry]
    worst_cases: Mapping[UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsInUse:
    """Accounts as stored: `slots` (n,), `limits` (n,) units, `present` (n,) False for erased people, `paused` (n,)."""

    slots: Integers
    limits: Integers
    present: Mask
    paused: Mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredPage:
    """The totals of page `number` at the ledger's sequence `seq`."""

    number: int
    seq: int
    totals: PageTotals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """Copies of all pages that an entry in (`since`, `seq`] has touched.

    They stand at `seq`, an entry with the hash `hash`.

    An entry touches the pages of the slots that it charges and of those that it leaves out.

    Pages are written one by one, each durable by itself, and then the head's `checkpoint_seq` moves to `seq`. Two facts
    hold at every instant, with any number of writers and wherever one stops. (1) A stored page is the ledger's replay
    at the page's own sequence. (2) No entry after a page's own sequence and up to `checkpoint_seq` touches that page.
    So a page stands at the later of the two sequences. A loader replays on each page the entries after both.

    (1) holds because a page moves only forward, and only in a database whose ledger has the entry `seq` with `hash`.
    The chain binds everything before that entry, and no ledger forgets. (2) holds because `checkpoint_seq` moves to
    `seq` only from `since` or later, and only when every copied page is stored at `seq` or later. A page that was not
    copied is not touched in (`since`, `seq`], and up to the old `checkpoint_seq` (2) held already.
    """

    since: int
    seq: int
    hash: bytes
    pages: Mapping[int, PageTotals]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAddress:
    """A process that serves, and the URL at which the other processes reach it."""

    id: UUID
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The claim of `replica` on a dataset for `left_s` more seconds of the store's clock, unless it is renewed."""

    dataset_id: int
    replica: ReplicaAddress
    left_s: float


class AccountColumns(NamedTuple):
    """Accounts of n consecutive slots.

    `limit` and `spent` (n,) are in units, `paused` and `present` (n,) are flags, `charged` and `left_out` (n,) count
    queries.
    """

    limit: Integers
    spent: Integers
    paused: Mask
    charged: Counts
    left_out: Counts
    present: Mask


@dataclass(frozen=True, slots=True)
class RegistrationHistory:
    """The registration that stands, and the earlier ones that extensions have replaced, by version."""

    now: DatasetRecord
    earlier: Sequence[EarlierRegistration] = ()

    @property
    def first(self) -> DatasetRecord:
        """The registration as it was first made, which the genesis binds."""
        return _as_of(self.now, self.earlier[0]) if self.earlier else self.now

    def versions(self) -> Iterator[DatasetRecord]:
        """Every version, beginning with the first."""
        yield from (_as_of(self.now, each) for each in self.earlier)
        yield self.now

    def at(self, seq: int) -> DatasetRecord:
        """The registration under which the entry `seq` was made."""
        return next((_as_of(self.now, each) for each in self.earlier if seq <= each.until_seq), self.now)


def registration_digest(capacity: int, schema: Schema) -> str:
    """The SHA-256, in hex, of the extended capacity and schema; the act of the extension binds it."""
    stated = {"capacity": capacity, "tables": schema.model_dump(mode="json", by_alias=True)}
    return hashlib.sha256(rfc8785.dumps(stated)).hexdigest()


def _as_of(now: DatasetRecord, earlier: EarlierRegistration) -> DatasetRecord:
    return replace(now, capacity=earlier.capacity, schema=earlier.schema, version=earlier.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedErasure:
    """The act number `number`, by which the individual in `slot` asks to be erased.

    `is_done` tells whether it was erased since.
    """

    number: int
    slot: int
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRecord:
    """An act of the journal as curators list it. `detail` has no bitmaps of slots.

    `key` belongs to the individual whose slot the act names, while that individual is present. An erasure has no key.
    """

    number: int
    at_seq: int
    act: str
    detail: Mapping[str, Any]
    at: datetime
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """A filter of ledger entries: those of one analyst, or with all of some words in the canonical query, or both.

    Words are sought without regard to case in the JSON of the canonical query.
    """

    analyst_id: UUID | None = None
    words: tuple[str, ...] = ()


EVERY_ENTRY: Final = EntryFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalFilter:
    """A filter of principals: those of one role, of one dataset, and with all of some words in their description.

    Words are sought without regard to case.
    """

    role: Role | None = None
    dataset: str | None = None
    words: tuple[str, ...] = ()


EVERY_PRINCIPAL: Final = PrincipalFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCharge:
    """An entry as one individual sees it; `part` is None where the entry is pruned."""

    seq: int
    query_id: UUID
    analyst_id: UUID
    canonical: bytes
    asked_at: datetime
    kind: Kind
    part: OwnOutcome | None


class ReleasePlace(NamedTuple):
    """The place of an answer among all those of its analyst: unique, and greater for later answers."""

    at: datetime
    dataset_id: int
    seq: int
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """One of an analyst's own releases as it is listed, without values and without the bytes of the reply."""

    dataset: str
    place: ReleasePlace
    query_id: UUID
    epoch: int
    canonical: bytes
    mechanism: str
    sigma: float
    sigmas: bytes  # as an entry keeps them
    dimension: int
    worst_case_units: int
