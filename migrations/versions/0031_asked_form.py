"""An answer keeps the form in which it was asked for, where that is another than the form of its entry.

Revision ID: 0031
Revises: 0030
"""

from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Add the column; the answers that are there were asked in the form of their entries."""
    op.execute("ALTER TABLE answers ADD COLUMN asked_form bytea")
