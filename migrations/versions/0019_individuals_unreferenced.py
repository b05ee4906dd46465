"""Individuals no longer refer to their dataset: the check of each row took more than half of a large upload.

A row is inserted in the transaction that has locked the dataset's head, which does refer to it.

Revision ID: 0019
Revises: 0018
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.execute("ALTER TABLE individuals DROP CONSTRAINT individuals_dataset_id_fkey")


def downgrade() -> None:
    """Back: all rows are checked once."""
    op.execute(
        "ALTER TABLE individuals ADD CONSTRAINT individuals_dataset_id_fkey"
        " FOREIGN KEY (dataset_id) REFERENCES datasets"
    )
