"""Uploads that were sent with an idempotency key: the keyed digest of each, and its report as sent.

A row is written in the transaction of the upload's own rows. Of the rows nothing is kept here: without the pepper the
digest cannot confirm a guessed upload, also after an erasure.

Revision ID: 0016
Revises: 0015
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE keyed_uploads (
    dataset_id integer NOT NULL REFERENCES datasets,
    principal_id uuid NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 128),
    digest bytea NOT NULL CHECK (length(digest) = 32),
    report bytea NOT NULL,
    PRIMARY KEY (dataset_id, principal_id, idempotency_key)
);
GRANT SELECT, INSERT ON keyed_uploads TO sparing_api;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(TABLES)


def downgrade() -> None:
    """Back: an upload that is sent again is stored again."""
    op.execute("DROP TABLE keyed_uploads")
