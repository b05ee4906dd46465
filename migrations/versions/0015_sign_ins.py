"""Sign-ins of browsers, and points in time of each dataset's budget summary.

A sign-in is kept by the keyed hash of its cookie. `key_hash` is that of the API key it was made with: a principal whose
key was replaced is signed out everywhere. Points are for curators alone; the ledger does not know of them.

Revision ID: 0015
Revises: 0014
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE sign_ins (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    principal_id uuid NOT NULL REFERENCES principals ON DELETE CASCADE,
    key_hash bytea NOT NULL,
    began_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX sign_ins_expiry ON sign_ins (expires_at);
CREATE TABLE summary_points (
    dataset_id integer NOT NULL REFERENCES datasets,
    seq bigint NOT NULL,
    at timestamptz NOT NULL,
    detail jsonb NOT NULL,
    PRIMARY KEY (dataset_id, seq)
);
CREATE TABLE alarms (
    dataset_id integer PRIMARY KEY REFERENCES datasets,
    share double precision NOT NULL CHECK (share > 0 AND share <= 1),
    rang_seq bigint
);
GRANT SELECT, INSERT, DELETE ON sign_ins, summary_points, alarms TO sparing_api;
GRANT UPDATE (expires_at) ON sign_ins TO sparing_api;
GRANT UPDATE (share, rang_seq) ON alarms TO sparing_api;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(TABLES)


def downgrade() -> None:
    """Back: everyone is signed out, and the history of the summary begins anew."""
    op.execute("DROP TABLE sign_ins, summary_points, alarms")
