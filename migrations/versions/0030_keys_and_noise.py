"""A dataset states how it compares keys, and an individual may have its key in plain form, by which twins are found.

The index of entries with Laplace noise becomes one of all noise that is not Gaussian, whatever comes later.
Of the keys of an earlier version no plain form is known, and such a dataset must be registered anew: none was released.

Revision ID: 0030
Revises: 0029
"""

from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Refuse a database that has datasets, and add the columns."""
    op.execute(
        "DO $$ BEGIN IF EXISTS (SELECT FROM datasets) THEN"
        " RAISE EXCEPTION 'its datasets were made before release: register them anew in an empty database';"
        " END IF; END $$"
    )
    op.execute(
        "ALTER TABLE datasets ADD COLUMN keys text NOT NULL CHECK (keys IN ('exact', 'caseless', 'number', 'uuid'))"
    )
    op.execute("ALTER TABLE individuals ADD COLUMN plain text CHECK (plain <> key)")
    op.execute("CREATE INDEX individuals_plain ON individuals (dataset_id, plain) WHERE plain IS NOT NULL")
    op.execute("DROP INDEX ledger_laplace")
    op.execute("CREATE INDEX ledger_other_noise ON ledger (dataset_id) WHERE mechanism NOT LIKE 'gaussian%'")
    op.execute("GRANT UPDATE (plain) ON individuals TO sparing_api")
