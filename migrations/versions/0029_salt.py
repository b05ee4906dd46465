"""A dataset has a salt, under which individuals' keys are digested, and each individual has such a digest.

A dataset of an earlier version has no digests, and must be registered anew: none was ever released.

Revision ID: 0029
Revises: 0028
"""

from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Refuse a database that has datasets, and add the column."""
    op.execute(
        "DO $$ BEGIN IF EXISTS (SELECT FROM datasets) THEN"
        " RAISE EXCEPTION 'its datasets were made before release: register them anew in an empty database';"
        " END IF; END $$"
    )
    op.execute("ALTER TABLE datasets ADD COLUMN salt bytea NOT NULL")
