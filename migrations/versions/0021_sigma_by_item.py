"""Entries say the sigma of each select item, where each has steps of its own; no earlier entry changes.

Revision ID: 0021
Revises: 0020
"""

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the column; the entries so far are counted on one grid."""
    op.execute(
        "ALTER TABLE ledger ADD COLUMN sigmas bytea NOT NULL DEFAULT '',"
        " ADD CONSTRAINT ledger_sigmas_check CHECK (length(sigmas) % 8 = 0)"
    )
