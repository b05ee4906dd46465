"""Frozen values that go in and out of the ports: registrations, heads, answers, accounts, pages, rows of listings.

Units are units of 2^-40 rho.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

import numpy as np
import rfc8785
from numpy.typing import NDArray

from service.accounting.accountings import GAUSSIAN, Accounting
from service.accounting.monitor import Monitor
from service.engine.pages import PageTotals
from service.ledger.model.errors import NotFound
from service.ledger.model.ledger_entry import Kind, PublicEntry
from service.ledger.model.pieces import OwnOutcome
from service.ledger.model.stated_guarantee import Guarantee
from service.ledger.model.views import Principal, Role, Rule
from service.query.keys import Key, KeyComparison, UnfitKey, compared
from service.query.schema import Schema

Codes = Mapping[str, NDArray[np.unsignedinteger]]
Address = tuple[UUID, str]


ERASED_NAME: Final = "erased"
"""The name that is left of a principal whose individual was erased."""

_FENCE_FIRST: Final = 1
NO_KEY: Final = bytes(32)
"""The key hash of a principal without a key, which an identity provider vouches for: no key is known to have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRecord(Principal):
    """A principal at rest; `key_hash` is HMAC-SHA256 of the secret, never the secret.

    The principal of an erased individual keeps neither `individual` nor the name. `organisation` and `purpose` are an
    analyst's, as individuals are shown them. A principal is unknown from `expires_at` on.
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

    An extension changes `capacity` and `schema`, and counts up `version`; nothing else ever changes. `instance` counts
    the datasets that had this name, this one included. An archived dataset answers no new query and takes no rows.

    With a `monitor` each limit is lower than it was stated, by its reserve of `reserve_units`. Keys are digested under
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
        """Compute the reserve once, for all answers."""
        object.__setattr__(self, "reserve_units", 0 if self.monitor is None else self.monitor.reserve_units)

    @property
    def floor_units(self) -> int:
        """The smallest limit for queries: the floor less the monitor's reserve."""
        return self.limit_floor_units - self.reserve_units

    def key_of(self, text: str) -> Key:
        """The key by which an individual is looked up that somebody names. Raises NotFound where it can be no key."""
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

    `seq` and `hash` are the last ledger entry's; `epoch` the public epoch; `fence` the writer's; `data_version` counts
    the acts of the journal, each of which may change records or limits, and `journal_hash` is the last one's; `slots`
    counts the slots handed out; `worst_case_units` sums the public worst cases; `checkpoint_seq` is the sequence up to
    which no page misses a charge (`Checkpoint`); `joining_units` is by how much the limit of a new individual is
    lowered, because a restore may have forgotten that they have spent it; behind `pruned_seq`, and with it, entries
    have neither charges nor pieces any more.
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
        """Tell whether the dataset was ever reconciled after a restore: its figures may lack what was lost."""
        return self.fence > _FENCE_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessRecord:
    """The position of a dataset when an answer left the replica, kept outside the database.

    `acts` counts the acts of its journal, `slots` the slots handed out; `worst_case_total_units` sums the public worst
    cases. Along one history fence, sequence and acts never fall, so that `position` puts its records in order.
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
        """(fence, sequence, acts): every later record exceeds it."""
        return self.fence, self.seq, self.acts


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """A stored answer: the bytes of `principal_id` and `key`. `seq` is the entry it shows (older when reused)."""

    principal_id: UUID
    key: str
    request_hash: bytes
    seq: int
    query_id: UUID
    body: bytes
    at: datetime
    asked_form: bytes | None = None  # the canonical form of its request, where that is another than its entry's


class OwnAccount(NamedTuple):
    """One slot's limit and spent total, in units, whether its individual takes part in nothing for now, and counters.

    Those are of queries that charged the slot or left it out; burns are in none.
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
    """A query as a store can look it up: a key, and a query by its hash (None when reuse is not wanted)."""

    address: Address
    query_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A store's knowledge of the queries a transaction was opened for, all read under the lock.

    The stored answer by (principal, key); the newest entry of this public epoch by query hash; by principal, what its
    queries may have cost an individual so far, in units.
    """

    answers: Mapping[Address, AnswerRecord]
    reusable: Mapping[str, PublicEntry]
    worst_cases: Mapping[UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsInUse:
    """Accounts as stored: `slots` (n,), `limits` (n,) units, `present` (n,) False for erased people, `paused` (n,)."""

    slots: NDArray[np.int64]
    limits: NDArray[np.int64]
    present: NDArray[np.bool_]
    paused: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredPage:
    """The totals of page `number` as the ledger gives them at sequence `seq`."""

    number: int
    seq: int
    totals: PageTotals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """Copies of all pages that an entry in (`since`, `seq`] has touched, at `seq`, whose hash is `hash`.

    An entry touches the pages of the slots that it charges and of those that it leaves out.

    Pages are written one by one, each durable by itself, and then the head's `checkpoint_seq` moves to `seq`. What
    holds at every instant, with any number of writers and wherever one stops, is this. (1) A stored page is the
    ledger's replay at the page's own sequence. (2) No entry after a page's own sequence and up to `checkpoint_seq`
    touches that page. So a page stands at the later of the two, and a loader replays the entries after
    `checkpoint_seq`, less those that the page itself has already.

    (1) holds because a page moves only forward and only in a database whose ledger has the entry `seq` with `hash`: the
    chain binds everything before it, and no ledger forgets. (2) holds because `checkpoint_seq` moves from `since` or
    later, when every copied page is stored at `seq` or later: a page that was not copied is not touched in (`since`,
    `seq`], and until `checkpoint_seq` (2) has held before.
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
    """`replica` works on the dataset for `left_s` more seconds of the store's clock, unless it renews the lease."""

    dataset_id: int
    replica: ReplicaAddress
    left_s: float


class AccountColumns(NamedTuple):
    """Accounts of n consecutive slots: units (n,), flags (n,), counts of queries (n,)."""

    limit: NDArray[np.int64]
    spent: NDArray[np.int64]
    paused: NDArray[np.bool_]
    charged: NDArray[Any]
    left_out: NDArray[Any]
    present: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RegistrationHistory:
    """The registration that stands, and what extensions have replaced, by version."""

    now: DatasetRecord
    earlier: Sequence[EarlierRegistration] = ()

    @property
    def first(self) -> DatasetRecord:
        """The registration as it was made, which the genesis binds."""
        return _as_of(self.now, self.earlier[0]) if self.earlier else self.now

    def versions(self) -> Iterator[DatasetRecord]:
        """Every version, the first first."""
        yield from (_as_of(self.now, each) for each in self.earlier)
        yield self.now

    def at(self, seq: int) -> DatasetRecord:
        """The registration under which the entry `seq` was made."""
        return next((_as_of(self.now, each) for each in self.earlier if seq <= each.until_seq), self.now)


def registration_digest(capacity: int, schema: Schema) -> str:
    """The SHA-256, in hex, by which the act of an extension binds the registration that it makes."""
    stated = {"capacity": capacity, "tables": schema.model_dump(mode="json", by_alias=True)}
    return hashlib.sha256(rfc8785.dumps(stated)).hexdigest()


def _as_of(now: DatasetRecord, earlier: EarlierRegistration) -> DatasetRecord:
    return replace(now, capacity=earlier.capacity, schema=earlier.schema, version=earlier.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedErasure:
    """An act by which the individual in a slot asks to be erased; `is_done`: it was erased after that."""

    number: int
    slot: int
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRecord:
    """An act of the journal as curators list it. `detail` has no bitmaps of slots.

    `key` is of the individual whose slot the act names, as long as it is present; an erasure has none.
    """

    number: int
    at_seq: int
    act: str
    detail: Mapping[str, Any]
    at: datetime
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """A filter of ledger entries: those of one analyst, and those with all of some words in the canonical query.

    Words compare as in lower case, in the JSON of the canonical form.
    """

    analyst_id: UUID | None = None
    words: tuple[str, ...] = ()


EVERY_ENTRY: Final = EntryFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalFilter:
    """A filter of principals: those of one role, of one dataset, and with all of some words in their description.

    Words compare as in lower case.
    """

    role: Role | None = None
    dataset: str | None = None
    words: tuple[str, ...] = ()


EVERY_PRINCIPAL: Final = PrincipalFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCharge:
    """An entry as one individual sees it; of a pruned one its part is unknown."""

    seq: int
    query_id: UUID
    analyst_id: UUID
    canonical: bytes
    asked_at: datetime
    kind: Kind
    part: OwnOutcome | None


class ReleasePlace(NamedTuple):
    """The place of an answer among its analyst's own: unique, and greater for later ones."""

    at: datetime
    dataset_id: int
    seq: int
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """One of an analyst's own releases as it is listed, which takes neither the values nor the reply's bytes."""

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
