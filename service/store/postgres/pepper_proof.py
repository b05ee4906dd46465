"""The pepper of a database: a start under another one is refused, before anything is read or written under it.

Under another pepper no key opens, no erased individual is recognised, so that a returning person would have a budget
anew, and no piece of the ledger can be read, which looks like damage. The database keeps a salted proof of the first.
"""

import secrets
from collections.abc import Callable
from typing import Final

from service.store.postgres.pool import SessionPool
from service.store.postgres.sealing import LedgerSeal, Unreadable
from service.workflows.model.pieces import WHOLE

__all__ = ["PepperMismatch", "check_pepper"]

_SALT_BYTES: Final = 32
_PROOF: Final = "SELECT salt, proof FROM pepper"
_KEEP: Final = "INSERT INTO pepper (salt, proof) VALUES (%s, %s) ON CONFLICT DO NOTHING"
# One sealed piece of the newest entry of each dataset that has one.
_SEALED: Final = (
    "SELECT l.salt, coalesce(p.number, %s), coalesce(l.piece, p.sealed)"
    " FROM heads h JOIN ledger l ON l.dataset_id = h.dataset_id AND l.seq = h.seq"
    " LEFT JOIN LATERAL (SELECT number, sealed FROM pieces WHERE dataset_id = h.dataset_id AND seq = h.seq"
    " AND sealed IS NOT NULL ORDER BY number LIMIT 1) AS p ON l.piece IS NULL"
    " WHERE coalesce(l.piece, p.sealed) IS NOT NULL"
)


class PepperMismatch(Exception):
    """This pepper is not the one that the database was begun with."""


def check_pepper(pool: SessionPool, seal: LedgerSeal, proof_of: Callable[[bytes], bytes]) -> None:
    """Raise PepperMismatch unless `proof_of` a salt is the proof that is kept; keep it where there is none yet.

    A database that is older than the proof, and has sealed entries, must have a newest entry that `seal` opens.
    """
    if not pool.rows(_PROOF, []):
        if not _opens_any(pool, seal):
            raise PepperMismatch(
                "the pepper (SPARING_PEPPER, or the file pepper in the home) opens none of the newest ledger entries:"
                " put back the one that this database was begun with"
            )
        salt = secrets.token_bytes(_SALT_BYTES)
        pool.commit(_KEEP, [salt, proof_of(salt)])
    ((salt, proof),) = pool.rows(_PROOF, [])  # another replica's, if that was quicker
    if proof_of(bytes(salt)) != bytes(proof):
        raise PepperMismatch(
            "the pepper (SPARING_PEPPER, or the file pepper in the home) is not the one that this database was begun"
            " with: put that one back"
        )


def _opens_any(pool: SessionPool, seal: LedgerSeal) -> bool:
    """Whether one of the newest entries can be opened, if any is sealed."""
    sealed = pool.rows(_SEALED, [WHOLE])
    return not sealed or any(_opens(seal, bytes(salt), number, bytes(piece)) for salt, number, piece in sealed)


def _opens(seal: LedgerSeal, salt: bytes, number: int, piece: bytes) -> bool:
    try:
        seal.open(salt, number, piece)
    except Unreadable:
        return False
    return True
