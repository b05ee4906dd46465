"""A dataset may have the drop rule; those that are registered keep theirs.

Revision ID: 0022
Revises: 0021
"""

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Admit the rule."""
    op.execute(
        "ALTER TABLE datasets DROP CONSTRAINT datasets_rule_check,"
        " ADD CONSTRAINT datasets_rule_check CHECK (rule IN ('skip', 'drop'))"
    )
