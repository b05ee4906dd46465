"""Sign-ins of browsers: an API key, or an identity provider's word, is exchanged once for a cookie.

A sign-in lasts IDLE after its last use and LONGEST at most. It ends when it is signed out, and when its principal's key
is revoked, replaced or expires. One that began with a provider's word ends when its principal is revoked, and wherever
no provider is configured any more.
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from service.workflows.model.api_keys import Pepper
from service.workflows.model.errors import NotFound
from service.workflows.model.views import Principal
from service.workflows.ports.store import SignIn, Store
from service.workflows.principals import REMEMBERED_FOR, Principals

IDLE: Final = timedelta(minutes=30)
LONGEST: Final = timedelta(hours=12)
RENEWED_AFTER: Final = timedelta(minutes=1)
"""A use extends the sign-in if the last extension is older: at most one write a minute."""
REMEMBERED_MAX: Final = 10_000
TOKEN_LENGTH_MAX: Final = 128
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class SignIns:
    """Begins, recognises and ends sign-ins. Thread-safe."""

    def __init__(self, *, store: Store, principals: Principals, pepper: Pepper, clock: Callable[[], datetime]) -> None:
        self._store, self._principals, self._pepper, self._clock = store, principals, pepper, clock
        self._remembered: dict[bytes, tuple[SignIn, datetime]] = {}

    def begin(self, principal: Principal) -> str:
        """The token of a new sign-in of a principal that has shown its key. Raises NotFound if it is gone."""
        record = self._store.principals.find(principal.id)
        if record is None:
            raise NotFound
        token, now = secrets.token_urlsafe(32), self._clock()
        self._store.sign_ins.add(
            SignIn(
                token_hash=self._pepper.sign_in_hash(token),
                principal_id=record.id,
                key_hash=record.key_hash,
                began_at=now,
                expires_at=now + IDLE,
            ),
            now=now,
        )
        return token

    def remembered(self, token: str) -> Principal | None:
        """The principal of a sign-in recognised less than REMEMBERED_FOR ago; None if it must be looked up.

        Reads no database and may be called in the event loop.
        """
        found, seen_at = self._remembered.get(self._pepper.sign_in_hash(token), (None, _NEVER))
        now = self._clock()
        if found is None or not seen_at <= now < seen_at + REMEMBERED_FOR or now >= found.expires_at:
            return None
        return self._principals.remembered_holder(found.principal_id, found.key_hash)

    def authenticate(self, token: str) -> Principal | None:
        """The principal of a sign-in; None alike for an unknown, ended and expired one. A use extends it."""
        now = self._clock()
        found = self._found(token, now)
        principal = None if found is None else self._principals.holder(found.principal_id, found.key_hash)
        if found is None or principal is None:
            return None
        if found.expires_at < now + IDLE - RENEWED_AFTER:
            self._store.sign_ins.extend(found.token_hash, now + IDLE)
        if len(self._remembered) >= REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[found.token_hash] = found, now
        return principal

    def standing(self, token: str) -> Principal | None:
        """The principal of a sign-in that has not ended; does not extend it."""
        found = self._found(token, self._clock())
        return None if found is None else self._principals.holder(found.principal_id, found.key_hash)

    def end(self, token: str) -> None:
        """Sign out; without effect on a sign-in that has ended."""
        token_hash = self._pepper.sign_in_hash(token)
        self._remembered.pop(token_hash, None)
        self._store.sign_ins.end(token_hash)

    def _found(self, token: str, now: datetime) -> SignIn | None:
        """The sign-in of a token, if it has not expired."""
        found = self._store.sign_ins.find(self._pepper.sign_in_hash(token))
        is_good = found is not None and now < min(found.expires_at, found.began_at + LONGEST)
        return found if is_good else None
