"""Registrations may be extended, datasets archived, and a dataset that has never answered may be deleted.

`registrations` keeps what an extension has replaced; `deletions` counts the datasets that had a name before, so that
a registration that is made again has a genesis of its own.

Revision ID: 0018
Revises: 0017
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TABLES = """
ALTER TABLE datasets
    ADD COLUMN version integer NOT NULL DEFAULT 1 CHECK (version >= 1),
    ADD COLUMN instance integer NOT NULL DEFAULT 1 CHECK (instance >= 1),
    ADD COLUMN archived_at timestamptz;
CREATE TABLE registrations (
    dataset_id integer NOT NULL REFERENCES datasets,
    version integer NOT NULL CHECK (version >= 1),
    until_seq bigint NOT NULL CHECK (until_seq >= 0),
    capacity bigint NOT NULL,
    schema jsonb NOT NULL,
    PRIMARY KEY (dataset_id, version)
);
CREATE TABLE deletions (
    name text COLLATE "C" PRIMARY KEY,
    datasets integer NOT NULL CHECK (datasets >= 1)
);
GRANT SELECT, INSERT ON registrations TO sparing_api;
GRANT SELECT ON deletions TO sparing_api;
GRANT UPDATE (capacity, schema, version, archived_at) ON datasets TO sparing_api;
"""
# It runs as its owner, because the service's own role may delete no dataset and no act.
FUNCTION = """
CREATE FUNCTION delete_dataset(deleted integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    IF EXISTS (SELECT FROM public.ledger WHERE dataset_id = deleted)
        OR EXISTS (SELECT FROM public.answers WHERE dataset_id = deleted)
        OR EXISTS (SELECT FROM public.heads WHERE dataset_id = deleted AND (seq > 0 OR fence > 1)) THEN
        RAISE EXCEPTION 'the dataset has a ledger' USING ERRCODE = 'restrict_violation';
    END IF;
    INSERT INTO public.deletions AS d (name, datasets) SELECT name, 1 FROM public.datasets WHERE id = deleted
        ON CONFLICT (name) DO UPDATE SET datasets = d.datasets + 1;
    DELETE FROM public.principals p USING public.datasets d WHERE d.id = deleted AND p.dataset = d.name;
    ALTER TABLE public.journal DISABLE TRIGGER journal_append_only;
    DELETE FROM public.journal WHERE dataset_id = deleted;
    ALTER TABLE public.journal ENABLE TRIGGER journal_append_only;
    DELETE FROM public.individuals WHERE dataset_id = deleted;
    DELETE FROM public.keyed_uploads WHERE dataset_id = deleted;
    DELETE FROM public.pages WHERE dataset_id = deleted;
    DELETE FROM public.worst_cases WHERE dataset_id = deleted;
    DELETE FROM public.summary_points WHERE dataset_id = deleted;
    DELETE FROM public.alarms WHERE dataset_id = deleted;
    DELETE FROM public.dataset_owners WHERE dataset_id = deleted;
    DELETE FROM public.registrations WHERE dataset_id = deleted;
    DELETE FROM public.heads WHERE dataset_id = deleted;
    DELETE FROM public.datasets WHERE id = deleted;
END $$;
REVOKE ALL ON FUNCTION delete_dataset(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delete_dataset(integer) TO sparing_api;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(TABLES)
    op.execute(FUNCTION)


def downgrade() -> None:
    """Back, as long as every registration is the first and no dataset is archived."""
    op.execute(
        "DO $$ BEGIN IF EXISTS (SELECT FROM datasets WHERE version > 1 OR instance > 1 OR archived_at IS NOT NULL) THEN"
        " RAISE EXCEPTION 'a dataset was changed in a way that an earlier version does not know'; END IF; END $$"
    )
    op.execute("DROP FUNCTION delete_dataset(integer)")
    op.execute("DROP TABLE registrations, deletions")
    op.execute("REVOKE UPDATE (capacity, schema) ON datasets FROM sparing_api")
    op.execute("ALTER TABLE datasets DROP COLUMN version, DROP COLUMN instance, DROP COLUMN archived_at")
