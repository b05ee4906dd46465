"""Principals and their API keys: creation, revocation, authentication."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from hmac import compare_digest
from typing import Final
from uuid import UUID, uuid4

from service.core.units import rho_of_units, units_down
from service.workflows.model.api_keys import Pepper, new_api_key, split_api_key
from service.workflows.model.errors import InvalidRequest, NotFound
from service.workflows.model.rows import PrincipalRecord
from service.workflows.model.views import Page, Principal, PrincipalRow, Role
from service.workflows.ports.store import Store

Clock = Callable[[], datetime]

REMEMBERED_FOR: Final = timedelta(seconds=1)
REMEMBERED_MAX: Final = 10_000
_UNKNOWN: Final = None, datetime.max.replace(tzinfo=UTC)


class Principals:
    """Creates, revokes and authenticates principals."""

    def __init__(self, *, store: Store, pepper: Pepper, clock: Clock) -> None:
        self._store, self._pepper, self._clock = store, pepper, clock
        self._remembered: dict[UUID, tuple[PrincipalRecord, datetime]] = {}

    def remembered(self, api_key: str) -> Principal | None:
        """The principal of a key that was recognised less than REMEMBERED_FOR ago; None if the key must be looked up.

        Reads no database and may be called in the event loop. A key revoked by another replica works for at most
        that long; one revoked here stops at once.
        """
        parts = split_api_key(api_key)
        record, seen_at = self._remembered.get(parts[0], _UNKNOWN) if parts is not None else _UNKNOWN
        if parts is None or record is None or not seen_at <= self._clock() < seen_at + REMEMBERED_FOR:
            return None
        return self._principal(record, parts[1])

    def authenticate(self, api_key: str) -> Principal | None:
        """The principal of a key; None alike when it is malformed, unknown or revoked."""
        parts = split_api_key(api_key)
        record = None if parts is None else self._store.principal(parts[0])
        if parts is None or record is None or record.revoked_at is not None:
            return None
        principal = self._principal(record, parts[1])
        if principal is not None:
            self._remember(record)
        return principal

    def create(
        self,
        *,
        role: Role,
        name: str,
        dataset: str | None = None,
        individual: str | None = None,
        allowance_rho: Decimal | None = None,
    ) -> tuple[Principal, str]:
        """A new principal and its key, which is shown once and never stored. Raises InvalidRequest naming the field."""
        _check(role, name, dataset, individual, allowance_rho)
        if dataset is not None and self._store.dataset(dataset) is None:
            raise InvalidRequest.of("dataset", "no such dataset")
        principal = Principal(
            id=uuid4(),
            role=role,
            name=name,
            dataset=dataset,
            individual=individual,
            allowance_units=None if allowance_rho is None else units_down(Fraction(allowance_rho)),
        )
        api_key, secret = new_api_key(principal.id)
        self._store.add_principal(
            PrincipalRecord(
                id=principal.id,
                role=role,
                name=name,
                dataset=dataset,
                individual=individual,
                allowance_units=principal.allowance_units,
                key_hash=self._pepper.key_hash(secret),
                created_at=self._clock(),
            )
        )
        return principal, api_key

    def listed(self, *, cursor: str | None, limit: int) -> Page[PrincipalRow]:
        """Every principal, active or revoked, without its key."""
        records = self._store.principals(after=_uuid(cursor), limit=limit)
        return Page(items=tuple(map(_row, records)), next=str(records[-1].id) if len(records) == limit else None)

    def revoke(self, principal_id: UUID) -> None:
        """Revoke a principal's key, from the next request on. Raises NotFound."""
        revoked = self._store.revoke_principal(principal_id, self._clock())
        self._remembered.pop(principal_id, None)
        if not revoked:
            raise NotFound

    def forget_individual(self, dataset: str, key: str) -> None:
        """Forget the principals of an erased individual; the erasure's transaction has revoked them."""
        for record, _ in list(self._remembered.values()):
            if (record.dataset, record.individual) == (dataset, key):
                self._remembered.pop(record.id, None)

    def _principal(self, record: PrincipalRecord, secret: str) -> Principal | None:
        if not compare_digest(self._pepper.key_hash(secret), record.key_hash):
            return None
        return Principal(
            id=record.id,
            role=record.role,
            name=record.name,
            dataset=record.dataset,
            individual=record.individual,
            allowance_units=record.allowance_units,
        )

    def _remember(self, record: PrincipalRecord) -> None:
        if len(self._remembered) >= REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[record.id] = record, self._clock()


def _check(role: Role, name: str, dataset: str | None, individual: str | None, allowance_rho: Decimal | None) -> None:
    if not 1 <= len(name) <= 128 or not name.isprintable():
        raise InvalidRequest.of("name", "1 to 128 printable characters")
    if (role == "individual") != (individual is not None):
        raise InvalidRequest.of("individual", "is given for the role individual, and for no other")
    if role == "individual" and dataset is None:
        raise InvalidRequest.of("dataset", "an individual's key belongs to one dataset")
    if allowance_rho is not None and role != "analyst":
        raise InvalidRequest.of("allowance_rho", "only analysts have allowances")
    if allowance_rho is not None and not 0 <= allowance_rho <= 2**20:
        raise InvalidRequest.of("allowance_rho", "must lie between 0 and 2^20")


def _row(record: PrincipalRecord) -> PrincipalRow:
    allowance = record.allowance_units
    return PrincipalRow(
        id=record.id,
        role=record.role,
        name=record.name,
        dataset=record.dataset,
        individual=record.individual,
        allowance_rho=None if allowance is None else str(rho_of_units(allowance)),
        created_at=record.created_at,
        revoked_at=record.revoked_at,
    )


def _uuid(cursor: str | None) -> UUID | None:
    try:
        return None if cursor is None else UUID(cursor)
    except ValueError as error:
        raise InvalidRequest.of("cursor", "not a cursor of this listing") from error
