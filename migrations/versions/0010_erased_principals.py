"""Erasing an individual revokes the principals that stand for it, and blanks its key and their names in them.

Until now the key of an erased person stayed in this table. Whose principals are left from before is not told by the
database: their keys stand in tombstones only, which the service alone can compare.

Revision ID: 0010
Revises: 0009
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.execute("CREATE INDEX principals_individual ON principals (dataset, individual) WHERE individual IS NOT NULL")
    op.execute("GRANT UPDATE (individual, name) ON principals TO sparing_api")


def downgrade() -> None:
    """Back."""
    op.execute("REVOKE UPDATE (individual, name) ON principals FROM sparing_api")
    op.execute("DROP INDEX principals_individual")
