"""Sign-ins by an identity provider: from a person's claims to a principal without a key.

Issuer and subject name one principal: its id follows from them by a keyed hash. A sign-in with another role, dataset or
individual changes the principal, and ends its earlier sign-ins. Its worst cases go on adding up under its id, so that
no change of role renews an allowance. Its releases are kept, and it can read them only as an analyst of their dataset.
A revocation and an expiry that a curator has set outlast the change. So does the lower of two allowances, where an
analyst stays an analyst.

Between the way to the provider and the way back a browser holds an attempt: a time and a random text, from which state,
nonce and verifier follow by keyed hashes. The service stores no attempt that it begins, so that any process may take
the answer. A process remembers the attempts that have come back to it, and takes none twice.
"""

import base64
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hmac import compare_digest
from itertools import count
from typing import Final
from uuid import UUID

from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.rows import ERASED_NAME, NO_KEY, PrincipalRecord
from service.ledger.model.views import Principal, Role
from service.ledger.ports.identity import IdentityProvider
from service.ledger.ports.store import Store, StoreUnavailable
from service.numerals import is_digits
from service.query.names import fault_of_name
from service.workflows.principals import NAME_MAX, Principals, allowance_units, individual_record

CALLBACK: Final = "/sign-in/callback"
"""The path to which the provider sends browsers back."""
ATTEMPT_FOR: Final = timedelta(minutes=10)
"""How long a person may take at the provider."""
ATTEMPT_LENGTH_MAX: Final = 128
RETURNED_MAX: Final = 100_000
"""How many attempts that have come back are remembered; beyond that the oldest is forgotten."""
_SKEW: Final = timedelta(seconds=5)
_KEY_LENGTH_MAX: Final = 1000
_DIGITS_MAX: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The role and the bounds of everybody whose claim has a value.

    Allowance, organisation and purpose are for analysts.
    """

    role: Role
    dataset: str | None = None
    allowance_rho: Decimal | None = None
    organisation: str | None = None
    purpose: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    """The claims that identify a person here. If several values of a claim have a grant, the first in `grants` counts.

    A claim is named as it stands in the token, or by a path of names joined by points. `title` is the provider's name
    on the page.
    """

    title: str
    grants: Mapping[str, Grant]
    role_claim: str
    name_claim: str
    individual_claim: str | None


class AttemptExpired(Exception):
    """The answer belongs to no attempt of this browser, or came too late."""


class NoRole(Exception):
    """The provider's word is valid, but gives this person no role here. The text says why, and names nobody."""


class ProviderSignIns:
    """Begins and completes sign-ins by one provider. Thread-safe."""

    def __init__(
        self,
        provider: IdentityProvider,
        rules: ClaimRules,
        *,
        store: Store,
        principals: Principals,
        pepper: Pepper,
        clock: Callable[[], datetime],
    ) -> None:
        self.title = rules.title
        self._provider, self._rules, self._pepper, self._clock = provider, rules, pepper, clock
        self._store, self._principals = store, principals
        self._returned: OrderedDict[bytes, datetime] = OrderedDict()  # until when each could come again
        self._lock = threading.Lock()

    def begin(self) -> tuple[str, str]:
        """(where to send the browser, the attempt that it is to hold). Raises ProviderUnavailable."""
        attempt = f"{int(self._clock().timestamp())}.{secrets.token_urlsafe(32)}"
        state, nonce, verifier = self._secrets_of(attempt)
        return self._provider.authorization_url(state=state, nonce=nonce, verifier=verifier), attempt

    def owns(self, attempt: str, state: str) -> bool:
        """Tell whether an answer with this state belongs to the attempt, and the attempt is young enough."""
        begun, _, _ = attempt.partition(".")
        if not (is_digits(begun) and len(begun) <= _DIGITS_MAX) or len(attempt) > ATTEMPT_LENGTH_MAX:
            return False
        age = self._clock() - datetime.fromtimestamp(int(begun), UTC)
        return -_SKEW <= age < ATTEMPT_FOR and compare_digest(self._secrets_of(attempt)[0].encode(), state.encode())

    def redeem(self, attempt: str, state: str) -> bool:
        """Tell whether an answer belongs to the attempt and is its first in this process. Later ones are refused.

        So each conversation with the provider uses up a sign-in that was begun here.
        """
        if not self.owns(attempt, state):
            return False
        now, name = self._clock(), self._pepper.attempt_hash("returned", attempt)
        with self._lock:
            while self._returned and (len(self._returned) >= RETURNED_MAX or next(iter(self._returned.values())) < now):
                self._returned.popitem(last=False)
            is_first = name not in self._returned
            self._returned[name] = now + ATTEMPT_FOR + _SKEW
        return is_first

    def is_issuer(self, name: str) -> bool:
        """Tell whether `name`, the issuer that an answer states, is this provider.

        An answer that states none passes too.
        """
        return name in {"", self._provider.issuer}

    def complete(self, attempt: str, state: str, code: str) -> Principal:
        """The principal of the person for whom the provider has issued a code.

        Raises AttemptExpired, IdentityRefused, NoRole, and ProviderUnavailable.
        """
        if not self.owns(attempt, state):
            raise AttemptExpired
        _, nonce, verifier = self._secrets_of(attempt)
        claims = self._provider.claims(code, nonce=nonce, verifier=verifier)
        grant = self._grant_of(claims)
        individual = self._individual_of(claims) if grant.role == "individual" else None
        principal_id, found = self._known(claims)
        record = self._record(principal_id, claims, grant, individual)
        return self._as_granted(record, self._introduced(record) if found is None else found)

    def _secrets_of(self, attempt: str) -> tuple[str, str, str]:
        """(state, nonce, verifier of PKCE), which only this service can work out."""
        state, nonce, verifier = (
            base64.urlsafe_b64encode(self._pepper.attempt_hash(kind, attempt)).rstrip(b"=").decode()
            for kind in ("state", "nonce", "verifier")
        )
        return state, nonce, verifier

    def _grant_of(self, claims: Mapping[str, object]) -> Grant:
        told = claim_of(claims, self._rules.role_claim)
        values = [told] if isinstance(told, str) else told if isinstance(told, Sequence) else []
        held = {value for value in values if isinstance(value, str)}
        for value, grant in self._rules.grants.items():
            if value in held:
                return grant
        raise NoRole("no value of the role claim has a role")

    def _individual_of(self, claims: Mapping[str, object]) -> str:
        told = claim_of(claims, self._rules.individual_claim or "")
        key = str(told) if isinstance(told, int) and not isinstance(told, bool) else told
        if not isinstance(key, str) or not 1 <= len(key) <= _KEY_LENGTH_MAX or "\0" in key:
            raise NoRole("no individual's key is claimed")
        return key

    def _known(self, claims: Mapping[str, object]) -> tuple[UUID, PrincipalRecord | None]:
        """(id, record) of a person's principal; the record is None for a new one.

        After an erasure of its individual the person gets a new id.
        """
        who = (self._provider.issuer, str(claims["sub"]))
        for generation in count():
            principal_id = self._pepper.identity_id((*who, str(generation)))
            found = self._store.principals.find(principal_id)
            if found is None or found.role != "individual" or found.individual is not None:
                break
        return principal_id, found

    def _record(
        self, principal_id: UUID, claims: Mapping[str, object], grant: Grant, individual: str | None
    ) -> PrincipalRecord:
        """The principal as it would be made now, without a key."""
        if grant.dataset is not None and individual is not None:
            try:
                key = self._principals.key_in(grant.dataset, individual)
            except InvalidRequest as error:
                raise _no_bounds() from error
            record = individual_record(grant.dataset, key, self._clock(), None)
            return replace(record, id=principal_id, key_hash=NO_KEY)
        return PrincipalRecord(
            id=principal_id,
            role=grant.role,
            name=_name_of(claims, self._rules.name_claim),
            dataset=grant.dataset,
            individual=None,
            allowance_units=allowance_units(grant.allowance_rho),
            key_hash=NO_KEY,
            created_at=self._clock(),
            organisation=grant.organisation,
            purpose=grant.purpose,
        )

    def _introduced(self, record: PrincipalRecord) -> PrincipalRecord:
        """Store the new principal and return it, or the one that another process has stored first."""
        try:
            self._principals.introduce(record)
        except InvalidRequest as error:
            raise _no_bounds() from error
        except StoreUnavailable:
            found = self._store.principals.find(record.id)
            if found is None:
                raise
            return found
        return record

    def _as_granted(self, record: PrincipalRecord, found: PrincipalRecord) -> Principal:
        """The known principal, changed where the provider's word gives it another role or other bounds."""
        if found.is_valid(self._clock()) and found.binding != record.binding:
            try:
                self._principals.rebind(_rebound(found, record))
            except InvalidRequest as error:
                raise _no_bounds() from error
            now = self._store.principals.find(record.id)
            if now is None or now.binding != record.binding:
                raise NoRole("another change of the principal came first")
            found = now
        if not found.is_valid(self._clock()):
            raise NoRole("the principal is revoked or has expired")
        return found


def _no_bounds() -> NoRole:
    return NoRole("the dataset or the individual is not there")


def _rebound(found: PrincipalRecord, granted: PrincipalRecord) -> PrincipalRecord:
    """The principal with the binding granted now, the expiry that a curator has set, and the lower of two allowances.

    A former analyst keeps organisation and purpose, so that individuals are still shown who asked.
    """
    if granted.role != "analyst":
        return replace(granted, expires_at=found.expires_at, organisation=found.organisation, purpose=found.purpose)
    allowances = [each.allowance_units for each in (found, granted) if each.allowance_units is not None]
    return replace(granted, expires_at=found.expires_at, allowance_units=min(allowances, default=None))


def claim_of(claims: Mapping[str, object], name: str) -> object:
    """The claim called `name`, or else the one at the path `name`, with points between its parts; None without one."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _name_of(claims: Mapping[str, object], name_claim: str) -> str:
    """The claimed name in printable characters, or else the subject."""
    for told in (claim_of(claims, name_claim), claims["sub"]):
        name = "".join(filter(str.isprintable, told)).strip() if isinstance(told, str) else ""
        name = name[:NAME_MAX].strip()
        if name != ERASED_NAME and fault_of_name(name, NAME_MAX) is None:
            return name
    return "of the provider"
