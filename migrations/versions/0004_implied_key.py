"""A reply's dataset is that of the ledger entry it shows: the table of replies need not look it up a second time.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward. (dataset_id, seq) refers to the ledger, and the ledger's dataset_id to the datasets."""
    op.execute("ALTER TABLE answers DROP CONSTRAINT answers_dataset_id_fkey")


def downgrade() -> None:
    """Back."""
    op.execute(
        "ALTER TABLE answers ADD CONSTRAINT answers_dataset_id_fkey FOREIGN KEY (dataset_id) REFERENCES datasets"
    )
