"""Sign-ins of browsers: an API key, or an identity provider's word, is exchanged once for a cookie.

A sign-in lasts IDLE after its last use and LONGEST at most. It ends when it is signed out, and when its principal's key
is revoked, replaced or expires. A sign-in that began with a provider's word ends when its principal is revoked or gets
another role. It is also refused by a process without a provider.
"""

import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import NotFound
from service.ledger.model.views import Principal
from service.ledger.ports.store import SignIn, Store
from service.workflows.principals import REMEMBERED_FOR, Claim, Principals

IDLE: Final = timedelta(minutes=30)
LONGEST: Final = timedelta(hours=12)
RENEWED_AFTER: Final = timedelta(minutes=1)
"""A use extends a sign-in only if the last extension is longer ago than this: at most one write a minute."""
CLOCKS_DIFFER: Final = timedelta(minutes=5)
"""How far ahead of this clock a sign-in may begin. One further ahead began under a wrong clock, and counts as ended."""
REMEMBERED_MAX: Final = 10_000
TOKEN_LENGTH_MAX: Final = 128
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class SignIns:
    """Begins, recognises and ends sign-ins. Thread-safe."""

    def __init__(self, *, store: Store, principals: Principals, pepper: Pepper, clock: Callable[[], datetime]) -> None:
        self._store, self._principals, self._pepper, self._clock = store, principals, pepper, clock
        self._remembered: dict[bytes, tuple[SignIn, datetime]] = {}

    def begin(self, principal: Principal) -> str:
        """The token of a new sign-in of a principal that was recognised. Raises NotFound if it is gone or rebound."""
        record = self._store.principals.find(principal.id)
        if record is None or record.binding != principal.binding:
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

    def is_familiar(self, token: str) -> bool:
        """Tell whether the sign-in was recognised here lately, even if it has ended since. Reads no database."""
        return self._pepper.sign_in_hash(token) in self._remembered

    def authenticate_all(self, tokens: Sequence[str]) -> list[Principal | None]:
        """The principal of each of many tokens, read together. A use extends the sign-in.

        None for a token that is unknown, ended or expired.
        """
        now = self._clock()
        held = self._held(tokens, now)
        due = [sign_in.token_hash for sign_in, _ in held.values() if sign_in.expires_at < now + IDLE - RENEWED_AFTER]
        if due:
            self._store.sign_ins.extend(due, now + IDLE)
        if len(self._remembered) + len(held) > REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered |= {sign_in.token_hash: (sign_in, now) for sign_in, _ in held.values()}
        return [held[token][1] if token in held else None for token in tokens]

    def standing_all(self, tokens: Sequence[str]) -> list[Principal | None]:
        """The principal of each sign-in that has not ended, else None. Extends no sign-in."""
        held = self._held(tokens, self._clock())
        return [held[token][1] if token in held else None for token in tokens]

    def end(self, token: str) -> None:
        """Sign out; without effect on a sign-in that has ended."""
        token_hash = self._pepper.sign_in_hash(token)
        self._remembered.pop(token_hash, None)
        self._store.sign_ins.end(token_hash)

    def _held(self, tokens: Collection[str], now: datetime) -> dict[str, tuple[SignIn, Principal]]:
        """(sign-in, principal) by token, where the sign-in has not expired and the principal's key is good."""
        hashes = {token: self._pepper.sign_in_hash(token) for token in tokens}
        known = {each.token_hash: each for each in self._store.sign_ins.some(set(hashes.values()))}
        good = {
            token: sign_in
            for token, token_hash in hashes.items()
            if (sign_in := known.get(token_hash)) is not None
            and sign_in.began_at - CLOCKS_DIFFER <= now < min(sign_in.expires_at, sign_in.began_at + LONGEST)
        }
        claims = {token: Claim(sign_in.principal_id, sign_in.key_hash) for token, sign_in in good.items()}
        holders = self._principals.holders(set(claims.values()))
        return {token: (good[token], holders[claim]) for token, claim in claims.items() if claim in holders}
