"""Parameters of gradients are kept for their analysts, by their hash.

Revision ID: 0023
Revises: 0022
"""

from alembic import op

revision = "0023"
down_revision = "0022"

TABLE = """
CREATE TABLE parameters (
    dataset_id integer NOT NULL REFERENCES datasets, principal_id uuid NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32), classes integer NOT NULL CHECK (classes >= 0),
    numbers bytea STORAGE EXTERNAL NOT NULL CHECK (length(numbers) > 0 AND length(numbers) % 8 = 0),
    PRIMARY KEY (dataset_id, principal_id, sha256));
CREATE TRIGGER parameters_append_only BEFORE UPDATE OR DELETE ON parameters
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER parameters_no_truncate BEFORE TRUNCATE ON parameters
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT ON parameters TO sparing_api;
"""


def upgrade() -> None:
    """Add the table; a dataset that has no answer has no rows in it, so that it can still be deleted."""
    op.execute(TABLE)
