"""The pepper of a database: a start under another one is refused, before anything is read or written under it.

Under another pepper no key opens, no erased individual is recognised, so that a returning person would have a budget
anew, and no piece of the ledger can be read, which looks like damage. The database keeps a salted proof of the first.
"""

import secrets
from collections.abc import Callable
from typing import Final

from service.store.postgres.pool import SessionPool

__all__ = ["PepperMismatch", "check_pepper"]

_SALT_BYTES: Final = 32
_PROOF: Final = "SELECT salt, proof FROM pepper"
_KEEP: Final = "INSERT INTO pepper (salt, proof) VALUES (%s, %s) ON CONFLICT DO NOTHING"


class PepperMismatch(Exception):
    """This pepper is not the one that the database was begun with."""


def check_pepper(pool: SessionPool, proof_of: Callable[[bytes], bytes]) -> None:
    """Raise PepperMismatch unless `proof_of` a salt is the proof that is kept; keep it at a database's first start."""
    if not pool.rows(_PROOF, []):
        salt = secrets.token_bytes(_SALT_BYTES)
        pool.commit(_KEEP, [salt, proof_of(salt)])
    ((salt, proof),) = pool.rows(_PROOF, [])  # another replica's, if that was quicker
    if proof_of(bytes(salt)) != bytes(proof):
        raise PepperMismatch(
            "the pepper (SPARING_PEPPER, or the file pepper in the home) is not the one that this database was begun"
            " with: put that one back"
        )
