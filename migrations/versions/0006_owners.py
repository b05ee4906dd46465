"""The process that works on a dataset, by a lease.

Revision ID: 0006
Revises: 0005
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Unlogged: a renewal every second then costs no write-ahead log and no sync. A crash of Postgres empties the table,
# and the processes claim their datasets anew.
OWNERS = """
CREATE UNLOGGED TABLE dataset_owners (
    dataset_id integer PRIMARY KEY REFERENCES datasets,
    replica uuid NOT NULL,
    url text NOT NULL,
    expires_at timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON dataset_owners TO sparing_api;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(OWNERS)


def downgrade() -> None:
    """Back."""
    op.execute("DROP TABLE dataset_owners")
