"""Ledger format 2: norms instead of prices, in sealed pieces by stretches of slots, behind salted digests.

Entries of format 1 keep their rows. The new columns are empty for them, and those of charges for entries of format 2.
`piece` is the piece of an entry that has one over all slots; the others stand in a table of their own.

Revision ID: 0011
Revises: 0010
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Defaults that are constants rewrite no row; the check reads every row once, without what lies outside of it.
COLUMNS = """
ALTER TABLE ledger
    ADD COLUMN format smallint NOT NULL DEFAULT 1,
    ADD COLUMN mechanism text NOT NULL DEFAULT 'gaussian',
    ADD COLUMN values_digest bytea NOT NULL DEFAULT '',
    ADD COLUMN salt bytea NOT NULL DEFAULT '',
    ADD COLUMN pieces_digest bytea NOT NULL DEFAULT '',
    ADD COLUMN private_digest bytea NOT NULL DEFAULT '',
    ADD COLUMN answer_digest bytea NOT NULL DEFAULT '',
    ADD COLUMN acts bigint NOT NULL DEFAULT 0,
    ADD COLUMN acts_hash bytea NOT NULL DEFAULT '',
    ADD COLUMN settled bytea NOT NULL DEFAULT '',
    ADD COLUMN piece bytea,
    ALTER COLUMN charge_form DROP NOT NULL,
    ALTER COLUMN slots DROP NOT NULL,
    ALTER COLUMN piece SET STORAGE EXTERNAL;
DO $$ DECLARE old text; BEGIN
    SELECT conname INTO STRICT old FROM pg_constraint
    WHERE conrelid = 'ledger'::regclass AND pg_get_constraintdef(oid) LIKE '%charge_units IS NULL%';
    EXECUTE format('ALTER TABLE ledger DROP CONSTRAINT %I', old);
END $$;
ALTER TABLE ledger ADD CONSTRAINT ledger_format CHECK (
    CASE format
        WHEN 1 THEN slots IS NOT NULL AND charge_form IS NOT NULL AND (charge_units IS NULL) <> (charges IS NULL)
        WHEN 2 THEN slots IS NULL AND charge_form IS NULL AND charge_units IS NULL AND charges IS NULL
            AND length(values_digest) = 32 AND length(salt) = 32
            AND length(pieces_digest) = 32 AND length(private_digest) = 32
        ELSE false
    END
);
"""
# What is sealed cannot be compressed.
PIECES = """
CREATE TABLE pieces (
    dataset_id integer NOT NULL,
    seq bigint NOT NULL,
    number integer NOT NULL CHECK (number >= 0),
    digest bytea NOT NULL CHECK (length(digest) = 32),
    sealed bytea,
    PRIMARY KEY (dataset_id, seq, number)
);
ALTER TABLE pieces ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE TRIGGER pieces_append_only BEFORE UPDATE OR DELETE ON pieces FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER pieces_no_truncate BEFORE TRUNCATE ON pieces FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT ON pieces TO sparing_api;
"""
# What is sealed is in no view: rows say up to which entry all charges are in them.
VIEW = """
CREATE OR REPLACE VIEW budgets AS
WITH tail AS (
    SELECT l.dataset_id, c.slot, sum(c.units) AS units
    FROM ledger l
    JOIN heads h ON h.dataset_id = l.dataset_id AND l.seq > h.checkpoint_seq
    CROSS JOIN LATERAL charges_of(l.charge_form, l.slots, l.active, l.charge_units, l.charges) c
    LEFT JOIN pages p ON p.dataset_id = l.dataset_id AND p.page = c.slot / 65536
    WHERE l.format = 1 AND (p.seq IS NULL OR l.seq > p.seq)
    GROUP BY l.dataset_id, c.slot
), places AS (
    SELECT h.dataset_id, coalesce(min(l.seq) - 1, h.seq) AS at_seq
    FROM heads h
    LEFT JOIN ledger l ON l.dataset_id = h.dataset_id AND l.seq > h.checkpoint_seq AND l.format <> 1
    GROUP BY h.dataset_id, h.seq
)
SELECT d.name AS dataset, i.slot, i.key, i.limit_units AS budget_units,
       coalesce(int8_at(p.spent, i.slot % 65536), 0) + coalesce(t.units, 0) AS spent_units,
       greatest(places.at_seq, p.seq) AS at_seq
FROM individuals i
JOIN datasets d ON d.id = i.dataset_id
JOIN places ON places.dataset_id = i.dataset_id
LEFT JOIN pages p ON p.dataset_id = i.dataset_id AND p.page = i.slot / 65536
LEFT JOIN tail t ON t.dataset_id = i.dataset_id AND t.slot = i.slot;
"""
WAY_BACK = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM ledger WHERE format <> 1) THEN
        RAISE EXCEPTION 'the ledger has entries of format 2, which an earlier version cannot read';
    END IF;
END $$;
DROP TABLE pieces;
DROP VIEW budgets;
CREATE VIEW budgets AS
WITH tail AS (
    SELECT l.dataset_id, c.slot, sum(c.units) AS units
    FROM ledger l
    JOIN heads h ON h.dataset_id = l.dataset_id AND l.seq > h.checkpoint_seq
    CROSS JOIN LATERAL charges_of(l.charge_form, l.slots, l.active, l.charge_units, l.charges) c
    LEFT JOIN pages p ON p.dataset_id = l.dataset_id AND p.page = c.slot / 65536
    WHERE p.seq IS NULL OR l.seq > p.seq
    GROUP BY l.dataset_id, c.slot
)
SELECT d.name AS dataset, i.slot, i.key, i.limit_units AS budget_units,
       coalesce(int8_at(p.spent, i.slot % 65536), 0) + coalesce(t.units, 0) AS spent_units
FROM individuals i
JOIN datasets d ON d.id = i.dataset_id
LEFT JOIN pages p ON p.dataset_id = i.dataset_id AND p.page = i.slot / 65536
LEFT JOIN tail t ON t.dataset_id = i.dataset_id AND t.slot = i.slot;
GRANT SELECT ON budgets TO sparing_api;
ALTER TABLE ledger DROP CONSTRAINT ledger_format;
ALTER TABLE ledger
    ADD CONSTRAINT ledger_charges CHECK ((charge_units IS NULL) <> (charges IS NULL)),
    ALTER COLUMN charge_form SET NOT NULL,
    ALTER COLUMN slots SET NOT NULL,
    DROP COLUMN format, DROP COLUMN mechanism, DROP COLUMN values_digest, DROP COLUMN salt, DROP COLUMN pieces_digest,
    DROP COLUMN private_digest, DROP COLUMN answer_digest, DROP COLUMN acts, DROP COLUMN acts_hash,
    DROP COLUMN settled, DROP COLUMN piece;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(COLUMNS)
    op.execute(PIECES)
    op.execute(VIEW)


def downgrade() -> None:
    """Back, as long as no entry of format 2 was made."""
    op.execute(WAY_BACK)
