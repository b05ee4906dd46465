"""The acts of one kind, and those on one individual, are found without a look at all others.

Revision ID: 0028
Revises: 0027
"""

from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Add an index of the journal by kind of act, and one by the slot that an act names."""
    op.execute("CREATE INDEX journal_acts ON journal (dataset_id, act, number)")
    op.execute("CREATE INDEX journal_slots ON journal (dataset_id, (detail ->> 'slot'), number)")
