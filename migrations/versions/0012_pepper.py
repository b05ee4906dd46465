"""The proof of the pepper that a database was begun with, so that a start under another one is refused.

It is a keyed hash of a random salt: whoever has the database without the pepper learns nothing that the hashes of keys
and tombstones do not tell. A database from before has no row; the first start afterwards keeps its own.

Revision ID: 0012
Revises: 0011
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

PEPPER = """
CREATE TABLE pepper (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    salt bytea NOT NULL CHECK (length(salt) = 32),
    proof bytea NOT NULL CHECK (length(proof) = 32)
);
CREATE TRIGGER pepper_append_only BEFORE UPDATE OR DELETE ON pepper FOR EACH ROW EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT ON pepper TO sparing_api;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(PEPPER)


def downgrade() -> None:
    """Back."""
    op.execute("DROP TABLE pepper")
