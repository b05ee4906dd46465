"""Counters of the queries that charged each slot or left it out, beside the spent totals of a page.

Pages of before cannot know them, and are deleted; checkpoints begin anew. So the first start after this migration
replays the whole ledger, and the next checkpoint has both.

Revision ID: 0013
Revises: 0012
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# Without a default: a process of an earlier version, which knows of no counters, writes no page.
COLUMNS = """
TRUNCATE pages;
ALTER TABLE pages
    ADD COLUMN charged bytea NOT NULL CHECK (length(charged) = 262144),
    ADD COLUMN left_out bytea NOT NULL CHECK (length(left_out) = 262144),
    ALTER COLUMN charged SET STORAGE EXTERNAL,
    ALTER COLUMN left_out SET STORAGE EXTERNAL;
ALTER TABLE heads DISABLE TRIGGER heads_forward;
UPDATE heads SET checkpoint_seq = 0;
ALTER TABLE heads ENABLE TRIGGER heads_forward;
"""
FUNCTION = """
-- uint32, big-endian, number `place` (from 0) of a blob.
CREATE FUNCTION uint4_at(blob bytea, place bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || encode(substring(blob FROM (4 * place + 1)::int FOR 4), 'hex'))::bit(32)::bigint
$$;
"""
WAY_BACK = """
DROP FUNCTION uint4_at;
ALTER TABLE pages DROP COLUMN charged, DROP COLUMN left_out;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(COLUMNS)
    op.execute(FUNCTION)


def downgrade() -> None:
    """Back; what is spent stays in the pages."""
    op.execute(WAY_BACK)
