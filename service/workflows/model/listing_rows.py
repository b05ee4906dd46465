"""Rows of listings: acts, releases, and an individual's own charges. Units are units of 2^-40 rho."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from service.workflows.model.ledger_entry import Kind
from service.workflows.model.pieces import Outcome


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
    """Which entries of a ledger are listed: of one analyst, and with all of some words in the canonical query.

    Words compare as in lower case, in the JSON of the canonical form.
    """

    analyst_id: UUID | None = None
    words: tuple[str, ...] = ()

    def admits(self, *, analyst_id: UUID, canonical: bytes) -> bool:
        """Whether an entry is listed."""
        text = canonical.decode().lower()
        return self.analyst_id in {None, analyst_id} and all(word.lower() in text for word in self.words)


EVERY_ENTRY: Final = EntryFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCharge:
    """An entry as one individual sees it: whether that slot was charged, and how many units.

    Of a pruned entry both are unknown: `outcome` and `units` are None.
    """

    seq: int
    query_id: UUID
    analyst_id: UUID
    canonical: bytes
    asked_at: datetime
    kind: Kind
    outcome: Outcome | None
    units: int | None


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
    sigma: float
    dimension: int
    worst_case_units: int
