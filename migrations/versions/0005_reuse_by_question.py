"""The index of questions that may be reused begins with the question.

It began with the dataset, and ended with the sequence. So it could serve to look an entry up by dataset and sequence,
by reading the dataset's whole part of it; and for a ledger that was empty when a session made its plans, Postgres
thought that as good as the primary key. Every reply was then checked against its entry that way, until the next
ANALYZE. `tests/store/postgres/test_plans.py` counts what commits read.

Revision ID: 0005
Revises: 0004
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward. Nobody looks for entries of a dataset by less than the whole key of this index."""
    op.execute("DROP INDEX ledger_reuse")
    op.execute("CREATE INDEX ledger_reuse ON ledger (query_hash, dataset_id, epoch, seq)")


def downgrade() -> None:
    """Back."""
    op.execute("DROP INDEX ledger_reuse")
    op.execute("CREATE INDEX ledger_reuse ON ledger (dataset_id, query_hash, epoch, seq)")
