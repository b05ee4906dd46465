"""A dataset may have a monitor, and a page the tick at which each slot was counted first; none has so far.

Revision ID: 0025
Revises: 0024
"""

from alembic import op

revision = "0025"
down_revision = "0024"

TICKS = "ADD COLUMN ticks bytea STORAGE EXTERNAL NOT NULL DEFAULT '' CHECK (length(ticks) IN (0, 131072))"


def upgrade() -> None:
    """Add the columns, and an index of the few entries that are ticks."""
    op.execute("ALTER TABLE datasets ADD COLUMN monitor jsonb")
    op.execute(f"ALTER TABLE pages {TICKS}")
    op.execute(f"ALTER TABLE pruned_totals {TICKS}")
    op.execute("CREATE INDEX ledger_ticks ON ledger (dataset_id, seq) WHERE mechanism LIKE 'gaussian prepaid %'")
