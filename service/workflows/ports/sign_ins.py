"""The port of the table of sign-ins: browsers that hold a cookie instead of an API key."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One sign-in: the keyed hash of its cookie, its principal, and the key hash that the principal then had."""

    token_hash: bytes = field(repr=False)
    principal_id: UUID
    key_hash: bytes = field(repr=False)
    began_at: datetime
    expires_at: datetime


class SignInTable(Protocol):
    """The sign-ins, durable."""

    def add(self, sign_in: SignIn, *, now: datetime) -> None:
        """Keep a new sign-in, and drop those that have expired by `now`."""

    def find(self, token_hash: bytes) -> SignIn | None:
        """One sign-in, expired or not."""

    def extend(self, token_hash: bytes, expires_at: datetime) -> None:
        """Let a sign-in last until `expires_at`; without effect on one that has ended."""

    def end(self, token_hash: bytes) -> None:
        """Forget a sign-in; without effect on one that has ended."""
