"""A dataset's registration through time: which capacity and which schema were in force at a ledger entry."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import rfc8785

from service.query.schema import Schema
from service.workflows.model.rows import DatasetRecord, EarlierRegistration


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
