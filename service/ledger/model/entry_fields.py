"""The fields of a ledger entry, once: database rows and the form in which replicas share entries follow from them.

The pieces of an entry are not among the fields, because their number depends on the entry. What the hash binds is
written out in `service.ledger.model.ledger_entry`, because the hashes of a format never change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal

from service.ledger.model.ledger_entry import LedgerEntry

FieldType = Literal["int2", "int4", "int8", "float8", "numeric", "text", "uuid", "timestamptz", "bytea"]
"""A type of Postgres; `numeric` holds whole numbers beyond 64 bits."""


@dataclass(frozen=True, slots=True)
class EntryField:
    """One value of an entry. `name` is the name of its attribute and of its column.

    Where `tells_charges` is true, the value or its size depends on charges, and analysts' requests never read the
    field.
    """

    name: str
    type: FieldType
    tells_charges: bool = False


def _field(name: str, type_: FieldType, *, tells_charges: bool = False) -> EntryField:
    return EntryField(name, type_, tells_charges=tells_charges)


ENTRY_FIELDS: Final[Sequence[EntryField]] = (
    _field("seq", "int8"),
    _field("query_id", "uuid"),
    _field("analyst_id", "uuid"),
    _field("analyst", "text"),
    _field("epoch", "int4"),
    _field("canonical", "bytea"),
    _field("query_hash", "text"),
    _field("sigma", "float8"),
    _field("grid_log2", "int4"),
    _field("dimension", "int4"),
    _field("worst_case_units", "int8"),
    _field("worst_case_total_units", "int8"),
    _field("charged_count", "int4", tells_charges=True),
    _field("left_out_count", "int4", tells_charges=True),
    _field("charged_units", "numeric", tells_charges=True),
    _field("values", "bytea"),
    _field("asked_at", "timestamptz"),
    _field("previous_hash", "bytea", tells_charges=True),
    _field("hash", "bytea", tells_charges=True),
    _field("kind", "text"),
    _field("format", "int2"),
    _field("mechanism", "text"),
    _field("values_digest", "bytea"),
    _field("salt", "bytea", tells_charges=True),
    _field("pieces_digest", "bytea", tells_charges=True),
    _field("private_digest", "bytea", tells_charges=True),
    _field("answer_digest", "bytea", tells_charges=True),
    _field("acts", "int8", tells_charges=True),
    _field("acts_hash", "bytea", tells_charges=True),
    _field("settled", "bytea", tells_charges=True),
    _field("sigmas", "bytea"),
)
"""All fields, in the order of the columns of a row."""

_ATTRIBUTES: Final = [each.name for each in ENTRY_FIELDS]

entry_values: Final[Callable[[LedgerEntry], tuple[Any, ...]]] = attrgetter(*_ATTRIBUTES)
"""The values of an entry's fields, in the order of ENTRY_FIELDS."""


def entry_from(values: Sequence[Any]) -> LedgerEntry:
    """The entry with these values, in the order of ENTRY_FIELDS, without its pieces."""
    return LedgerEntry(**dict(zip(_ATTRIBUTES, values, strict=True)))
