"""A dataset has an accounting; those that are registered have Gaussian differential privacy.

Revision ID: 0024
Revises: 0023
"""

from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Add the column. A registration is written once, and no trigger or grant has to know of it."""
    op.execute("ALTER TABLE datasets ADD COLUMN accounting jsonb NOT NULL DEFAULT '\"gdp\"'")
    op.execute("ALTER TABLE datasets ALTER COLUMN accounting DROP DEFAULT")
