"""Principals and their API keys: creation, revocation, authentication; the checks of their facts, and views of them."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hmac import compare_digest
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID, uuid4

from service.background import in_background
from service.core.charge import rho_of_units, units_down
from service.ledger.model.api_keys import Pepper, new_api_key, split_api_key
from service.ledger.model.errors import InvalidRequest, NotFound
from service.ledger.model.rows import EVERY_PRINCIPAL, NO_KEY, DatasetRecord, PrincipalFilter, PrincipalRecord
from service.ledger.model.views import AnalystRow, Asker, NewPrincipal, Page, Principal, PrincipalRow, Role
from service.ledger.ports.store import Store, registered
from service.query.keys import Key
from service.query.names import fault_of_name

Clock = Callable[[], datetime]
Shown = TypeVar("Shown", AnalystRow, NewPrincipal, PrincipalRow)

NAME_MAX: Final = 128
TEXT_MAX: Final = 200
EXPIRY_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Every expiry lies before this: a later date could be of the year 10000 in another zone, beyond any `datetime`."""
REMEMBERED_FOR: Final = timedelta(seconds=1)
REMEMBERED_MAX: Final = 10_000
INDIVIDUALS_MAX: Final = 100_000
"""The number of individuals that get keys by one request."""
SEARCHED_MAX: Final = 4096
_SHOWN_MAX: Final = 20
_NOT_THERE: Final = "no such individual is in the dataset"
_UNKNOWN: Final = None, datetime.max.replace(tzinfo=UTC)


class Claim(NamedTuple):
    """The claim to be this principal, made with a key of this hash."""

    principal: UUID
    key_hash: bytes


class Principals:
    """Creates, revokes and authenticates principals."""

    def __init__(self, *, store: Store, pepper: Pepper, clock: Clock, has_provider: bool = False) -> None:
        """Accept principals without a key if there is a provider that vouches for them."""
        self._store, self._pepper, self._clock, self._has_provider = store, pepper, clock, has_provider
        self._remembered: dict[UUID, tuple[PrincipalRecord, datetime]] = {}

    def remembered(self, api_key: str) -> Principal | None:
        """The principal of a key that was recognised less than REMEMBERED_FOR ago; None if the key must be looked up.

        Reads no database and may be called in the event loop. A key that another replica revokes works for
        REMEMBERED_FOR more at most; a key revoked here stops at once.
        """
        parts = split_api_key(api_key)
        return None if parts is None else self.remembered_holder(parts[0], self._pepper.key_hash(parts[1]))

    def is_familiar(self, api_key: str) -> bool:
        """Tell whether the key was recognised here lately, even if it has ended since. Reads no database."""
        parts = split_api_key(api_key)
        return parts is not None and self.is_familiar_holder(parts[0], self._pepper.key_hash(parts[1]))

    def authenticate_all(self, api_keys: Sequence[str]) -> list[Principal | None]:
        """The principal of each of many keys, read together.

        None for a key that is malformed, unknown, revoked or expired.
        """
        claims = [self._claim_of(api_key) for api_key in api_keys]
        holders = self.holders([claim for claim in claims if claim is not None])
        return [None if claim is None else holders.get(claim) for claim in claims]

    standing_all = authenticate_all
    """The use of a key changes nothing."""

    def _claim_of(self, api_key: str) -> Claim | None:
        parts = split_api_key(api_key)
        return None if parts is None else Claim(parts[0], self._pepper.key_hash(parts[1]))

    def is_familiar_holder(self, principal_id: UUID, key_hash: bytes) -> bool:
        """Tell whether the principal was recognised here lately, with a key of this hash."""
        record, _ = self._remembered.get(principal_id, _UNKNOWN)
        return record is not None and compare_digest(record.key_hash, key_hash)

    def remembered_holder(self, principal_id: UUID, key_hash: bytes) -> Principal | None:
        """The principal, if it was recognised less than REMEMBERED_FOR ago and its key has this hash and is good."""
        record, seen_at = self._remembered.get(principal_id, _UNKNOWN)
        now = self._clock()
        if record is None or not seen_at <= now < seen_at + REMEMBERED_FOR or not record.is_valid(now):
            return None
        return record if compare_digest(record.key_hash, key_hash) else None

    def holders(self, claims: Collection[Claim]) -> dict[Claim, Principal]:
        """The principal of each claim whose key still has the claimed hash and is good now. All are read together."""
        if not claims:
            return {}
        known = {record.id: record for record in self._store.principals.recognised({each.principal for each in claims})}
        found: dict[Claim, Principal] = {}
        for claim in claims:
            record, now = known.get(claim.principal), self._clock()
            if record is not None and self._is_good(record, claim, now):
                if len(self._remembered) >= REMEMBERED_MAX:
                    self._remembered.clear()
                self._remembered[record.id] = record, now
                found[claim] = record
        return found

    def _is_good(self, record: PrincipalRecord, claim: Claim, now: datetime) -> bool:
        if not record.is_valid(now) or not compare_digest(record.key_hash, claim.key_hash):
            return False
        return self._has_provider or record.key_hash != NO_KEY

    def create(
        self,
        *,
        role: Role,
        name: str,
        dataset: str | None = None,
        individual: str | None = None,
        allowance_rho: Decimal | None = None,
        organisation: str | None = None,
        purpose: str | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[Principal, str]:
        """A new principal and its key, which is shown once and never stored. Raises InvalidRequest naming the field."""
        check_bounds(role, dataset, individual)
        key = None if dataset is None or individual is None else self.key_in(dataset, individual)
        record = PrincipalRecord(
            id=uuid4(),
            role=role,
            name=name,
            dataset=dataset,
            individual=key,
            allowance_units=allowance_units(allowance_rho),
            key_hash=b"",
            created_at=self._clock(),
            organisation=organisation,
            purpose=purpose,
            expires_at=expires_at,
        )
        check_details(record, self._clock())
        self._check_bounds_known(dataset, key)
        record, api_key = self._with_key(record)
        self._store.principals.add([record])
        return record, api_key

    def key_in(self, dataset: str, individual: str) -> Key:
        """The key of an individual that somebody names, as the dataset compares it. Raises InvalidRequest."""
        try:
            return self._registered(dataset).key_of(individual)
        except NotFound:
            raise InvalidRequest.of("individual", _NOT_THERE) from None

    def introduce(self, record: PrincipalRecord) -> None:
        """Store a principal that an identity provider vouches for. Raises InvalidRequest naming the field."""
        self._check_granted(record)
        self._store.principals.add([record])

    def rebind(self, record: PrincipalRecord) -> bool:
        """Give a principal the role and the bounds that the provider vouches for now, and end its earlier sign-ins.

        Returns False, and changes nothing, if the principal is unknown, revoked, or has this role and these bounds
        already. Raises InvalidRequest naming the field.
        """
        self._check_granted(record)
        is_changed = self._store.principals.rebind(record)
        self._remembered.pop(record.id, None)
        return is_changed

    def create_individuals(
        self, dataset: str, individuals: Sequence[str], *, expires_at: datetime | None = None
    ) -> list[tuple[str, str]]:
        """(individual, key) of new principals for many individuals of a dataset, all or none.

        Raises NotFound, and InvalidRequest naming the first individuals that are not in the dataset or come twice.
        """
        make = partial(self._create_individuals, dataset, individuals, expires_at)
        return in_background(make, name=f"keys-{dataset}")

    def _create_individuals(
        self, dataset: str, individuals: Sequence[str], expires_at: datetime | None
    ) -> list[tuple[str, str]]:
        record = registered(self._store, dataset)
        if not 1 <= len(individuals) <= INDIVIDUALS_MAX:
            raise InvalidRequest.of("individuals", f"1 to {INDIVIDUALS_MAX} individuals")
        keys, unfit = _keys_of(record, individuals)
        twice = [key for key, times in Counter(keys).items() if times > 1]
        unknown = [*unfit, *self._unknown(record, keys)]
        for wrong, fault in ((twice, "named twice"), (unknown, "not in the dataset")):
            if wrong:
                shown = ", ".join(wrong[:_SHOWN_MAX])
                raise InvalidRequest.of("individuals", f"{len(wrong)} are {fault}, the first of them {shown}")
        made = [self._with_key(individual_record(dataset, key, self._clock(), expires_at)) for key in keys]
        check_details(made[0][0], self._clock())
        self._store.principals.add([record for record, _ in made])
        return [(key, api_key) for key, (_, api_key) in zip(keys, made, strict=True)]

    def change(self, principal_id: UUID, changes: Mapping[str, Any]) -> PrincipalRow:
        """Change `name`, `allowance_rho`, `organisation`, `purpose` or `expires_at`, from the next request on.

        Raises NotFound for a principal that is unknown or revoked, InvalidRequest naming the field.
        """
        record = self._store.principals.find(principal_id)
        if record is None or record.revoked_at is not None:
            raise NotFound
        given = dict(changes)
        if "allowance_rho" in given:
            given["allowance_units"] = allowance_units(given.pop("allowance_rho"))
        changed = replace(record, **given)
        check_details(changed, self._clock() if "expires_at" in given else None)
        return self._replace(changed)

    def replace_key(self, principal_id: UUID) -> tuple[Principal, str]:
        """A new key of a principal; the old key and its sign-ins end. Raises NotFound, InvalidRequest."""
        record = self._store.principals.find(principal_id)
        if record is None:
            raise NotFound
        if record.key_hash == NO_KEY:
            raise InvalidRequest.of("principal", "signs in by the identity provider and has no key to replace")
        changed, api_key = self._with_key(record)
        self._replace(changed)
        return changed, api_key

    def askers(self, principal_ids: Collection[UUID]) -> dict[UUID, Asker]:
        """The present description of each of these analysts, also of those that are revoked."""
        return {
            record.id: Asker(organisation=record.organisation, purpose=record.purpose)
            for record in self._store.principals.some(principal_ids)
        }

    def analysts_of(self, dataset: str) -> list[AnalystRow]:
        """The analysts that may ask a dataset, with their allowances and worst cases there. Raises NotFound."""
        spent = self._store.worst_cases_in(registered(self._store, dataset).id)
        return [
            shown(AnalystRow, record, worst_case_spent_rho=str(rho_of_units(spent.get(record.id, 0))))
            for record in self._store.principals.analysts_of(dataset)
        ]

    def listed(self, *, cursor: str | None, limit: int, only: PrincipalFilter = EVERY_PRINCIPAL) -> Page[PrincipalRow]:
        """The principals that `only` admits, active or revoked, without their keys.

        A page of a search looks at SEARCHED_MAX principals at most, so that a page may be empty and still have a next
        page.
        """
        table, after = self._store.principals, _uuid(cursor)
        last = None if only == EVERY_PRINCIPAL else table.reach(after=after, limit=SEARCHED_MAX)
        records = table.listed(after=after, limit=limit, only=only, last=last)
        place = records[-1].id if len(records) == limit else last
        return Page(
            items=tuple(shown(PrincipalRow, each) for each in records), next=None if place is None else str(place)
        )

    def revoke(self, principal_id: UUID) -> None:
        """Revoke a principal's key, from the next request on. Raises NotFound."""
        revoked = self._store.principals.revoke(principal_id, self._clock())
        self._remembered.pop(principal_id, None)
        if not revoked:
            raise NotFound

    def forget(self, dataset: str, individual: Key | None = None) -> None:
        """Drop from memory the principals of an erased individual or a deleted dataset; the database has ended them."""
        for record, _ in list(self._remembered.values()):
            if record.dataset == dataset and individual in {None, record.individual}:
                self._remembered.pop(record.id, None)

    def _check_granted(self, record: PrincipalRecord) -> None:
        check_bounds(record.role, record.dataset, record.individual)
        check_details(record, self._clock())
        self._check_bounds_known(record.dataset, record.individual)

    def _check_bounds_known(self, dataset: str | None, individual: Key | None) -> None:
        """Raise InvalidRequest unless the dataset exists, and the individual is in it."""
        registered = None if dataset is None else self._registered(dataset)
        if registered is not None and individual is not None and self._unknown(registered, [individual]):
            raise InvalidRequest.of("individual", _NOT_THERE)

    def _registered(self, dataset: str) -> DatasetRecord:
        registered = self._store.dataset(dataset)
        if registered is None:
            raise InvalidRequest.of("dataset", "no such dataset")
        return registered

    def _with_key(self, record: PrincipalRecord) -> tuple[PrincipalRecord, str]:
        api_key, secret = new_api_key(record.id)
        return replace(record, key_hash=self._pepper.key_hash(secret)), api_key

    def _replace(self, record: PrincipalRecord) -> PrincipalRow:
        changed = self._store.principals.change(record)
        self._remembered.pop(record.id, None)
        if not changed:
            raise NotFound
        return shown(PrincipalRow, record)

    def _unknown(self, dataset: DatasetRecord, keys: Sequence[Key]) -> list[Key]:
        """The keys that no individual in the dataset has."""
        with self._store.transaction(dataset.id, lock=False) as transaction:
            slots = transaction.slots_of(keys).tolist()
        return [key for key, slot in zip(keys, slots, strict=True) if slot < 0]


def _keys_of(dataset: DatasetRecord, individuals: Sequence[str]) -> tuple[list[Key], list[str]]:
    """(the keys of individuals that somebody names, the texts that cannot be keys)."""
    keys, unfit = [], []
    for text in individuals:
        try:
            keys.append(dataset.key_of(text))
        except NotFound:
            unfit.append(text)
    return keys, unfit


def check_bounds(role: Role, dataset: str | None, individual: str | None) -> None:
    """Raise InvalidRequest unless the role fits the dataset and the individual to which it is bound."""
    if (role == "individual") != (individual is not None):
        raise InvalidRequest.of("individual", "is given for the role individual, and for no other")
    if role == "individual" and dataset is None:
        raise InvalidRequest.of("dataset", "an individual's key belongs to one dataset")


def check_details(record: PrincipalRecord, now: datetime | None) -> None:
    """Raise InvalidRequest naming the field; the expiry is compared with `now` unless that is None."""
    texts = (("organisation", record.organisation, TEXT_MAX), ("purpose", record.purpose, TEXT_MAX))
    for field, text, length_max in (("name", record.name, NAME_MAX), *texts):
        fault = None if text is None else fault_of_name(text, length_max)
        if fault is not None:
            raise InvalidRequest.of(field, fault)
    if record.allowance_units is not None and record.role != "analyst":
        raise InvalidRequest.of("allowance_rho", "only analysts have allowances")
    if now is not None and record.expires_at is not None and record.expires_at <= now:
        raise InvalidRequest.of("expires_at", "lies in the past")
    if record.expires_at is not None and record.expires_at >= EXPIRY_END:
        raise InvalidRequest.of("expires_at", f"must lie before the year {EXPIRY_END.year}")


def allowance_units(allowance_rho: Decimal | None) -> int | None:
    """An allowance in units, rounded down; None for no bound. Raises InvalidRequest."""
    if allowance_rho is not None and not 0 <= allowance_rho <= 2**20:
        raise InvalidRequest.of("allowance_rho", "must lie between 0 and 2^20")
    return None if allowance_rho is None else units_down(Fraction(allowance_rho))


def individual_record(dataset: str, individual: Key, now: datetime, expires_at: datetime | None) -> PrincipalRecord:
    """A principal of an individual, without a key yet; named by the individual's key, where that can be a name."""
    is_name = fault_of_name(individual, NAME_MAX) is None
    return PrincipalRecord(
        id=uuid4(),
        role="individual",
        name=individual if is_name else "individual",
        dataset=dataset,
        individual=individual,
        allowance_units=None,
        key_hash=b"",
        created_at=now,
        expires_at=expires_at,
    )


def shown(kind: type[Shown], record: Principal, **more: Any) -> Shown:  # noqa: ANN401 - as `kind` declares
    """The principal as a curator is shown it: the facts that `kind` names, the allowance in rho, and `more`."""
    facts = {each.name: getattr(record, each.name) for each in fields(kind) if hasattr(record, each.name)}
    allowance = None if record.allowance_units is None else str(rho_of_units(record.allowance_units))
    return kind(**facts, allowance_rho=allowance, **more)


def _uuid(cursor: str | None) -> UUID | None:
    try:
        return None if cursor is None else UUID(cursor)
    except ValueError as error:
        raise InvalidRequest.of("cursor", "not a cursor of this listing") from error
