"""Principals carry an organisation and a purpose, which individuals are shown, and may expire.

Their names, allowances and keys may change from now on.

Revision ID: 0017
Revises: 0016
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.execute(
        "ALTER TABLE principals ADD COLUMN organisation text, ADD COLUMN purpose text,"
        " ADD COLUMN expires_at timestamptz"
    )
    op.execute(
        "GRANT UPDATE (name, allowance_units, key_hash, organisation, purpose, expires_at) ON principals TO sparing_api"
    )


def downgrade() -> None:
    """Back, as long as no key expires: an earlier version would take it for valid."""
    op.execute(
        "DO $$ BEGIN IF EXISTS (SELECT FROM principals WHERE expires_at IS NOT NULL AND revoked_at IS NULL) THEN"
        " RAISE EXCEPTION 'a key expires, which an earlier version does not know'; END IF; END $$"
    )
    op.execute(
        "REVOKE UPDATE (allowance_units, key_hash, organisation, purpose, expires_at) ON principals FROM sparing_api"
    )
    op.execute("ALTER TABLE principals DROP COLUMN organisation, DROP COLUMN purpose, DROP COLUMN expires_at")
