"""Erasure and pruning reach into the ledger: quantities may be amended or dropped, and nothing else of a row changes.

`first_digest` keeps, of a row whose piece or charges were amended or dropped, the digest that its hash binds. What was
amended stands in a table of its own; the totals at the pruned sequence in another one.

Revision ID: 0014
Revises: 0013
"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE heads ADD COLUMN pruned_seq bigint NOT NULL DEFAULT 0;
ALTER TABLE heads ADD CONSTRAINT heads_pruned CHECK (pruned_seq <= checkpoint_seq);
ALTER TABLE ledger ADD COLUMN first_digest bytea NOT NULL DEFAULT '';
ALTER TABLE ledger DROP CONSTRAINT ledger_format;
ALTER TABLE ledger ADD CONSTRAINT ledger_format CHECK (
    CASE format
        WHEN 1 THEN (slots IS NOT NULL AND charge_form IS NOT NULL AND (charge_units IS NULL) <> (charges IS NULL))
            OR (slots IS NULL AND charge_form IS NULL AND active IS NULL AND charge_units IS NULL AND charges IS NULL
                AND length(first_digest) = 32)
        WHEN 2 THEN slots IS NULL AND charge_form IS NULL AND charge_units IS NULL AND charges IS NULL
            AND length(values_digest) = 32 AND length(salt) = 32
            AND length(pieces_digest) = 32 AND length(private_digest) = 32
        ELSE false
    END
);
CREATE TABLE amendments (
    dataset_id integer NOT NULL,
    seq bigint NOT NULL,
    number integer NOT NULL,
    erasure bigint NOT NULL,
    old_digest bytea NOT NULL CHECK (length(old_digest) = 32),
    new_digest bytea NOT NULL CHECK (length(new_digest) = 32),
    PRIMARY KEY (dataset_id, seq, number, erasure)
);
CREATE TABLE pruned_totals (LIKE pages INCLUDING ALL);
ALTER TABLE pruned_totals ADD FOREIGN KEY (dataset_id) REFERENCES datasets;
"""
# The second half of a paired assertion: whatever the service does, a row's hash goes on being that of the row.
GUARDS = """
CREATE FUNCTION only_quantities() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    rest ledger := NEW;
BEGIN
    rest.piece := OLD.piece;
    rest.charge_form := OLD.charge_form;
    rest.slots := OLD.slots;
    rest.active := OLD.active;
    rest.charge_units := OLD.charge_units;
    rest.charges := OLD.charges;
    rest.first_digest := OLD.first_digest;
    IF rest IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'ledger is append-only';
    END IF;
    IF length(OLD.first_digest) > 0 AND NEW.first_digest <> OLD.first_digest THEN
        RAISE EXCEPTION 'the first digest of a row of ledger is written once';
    END IF;
    IF (NEW.piece IS NULL AND OLD.piece IS NOT NULL) OR (NEW.slots IS NULL AND OLD.slots IS NOT NULL) THEN
        IF NEW.seq > (SELECT pruned_seq FROM heads WHERE dataset_id = NEW.dataset_id) THEN
            RAISE EXCEPTION 'ledger is append-only behind what is pruned';
        END IF;
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER ledger_append_only ON ledger;
CREATE TRIGGER ledger_append_only BEFORE DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_only_quantities BEFORE UPDATE ON ledger FOR EACH ROW EXECUTE FUNCTION only_quantities();

CREATE FUNCTION only_sealed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.seq > (SELECT pruned_seq FROM heads WHERE dataset_id = OLD.dataset_id) THEN
            RAISE EXCEPTION 'pieces is append-only behind what is pruned';
        END IF;
        RETURN OLD;
    END IF;
    IF (NEW.dataset_id, NEW.seq, NEW.number, NEW.digest) IS DISTINCT FROM
        (OLD.dataset_id, OLD.seq, OLD.number, OLD.digest) OR NEW.sealed IS NULL
    THEN
        RAISE EXCEPTION 'pieces is append-only';
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER pieces_append_only ON pieces;
CREATE TRIGGER pieces_only_sealed BEFORE UPDATE OR DELETE ON pieces FOR EACH ROW EXECUTE FUNCTION only_sealed();
CREATE TRIGGER amendments_append_only BEFORE UPDATE OR DELETE ON amendments
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER amendments_no_truncate BEFORE TRUNCATE ON amendments
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.slots < OLD.slots OR NEW.worst_case_units < OLD.worst_case_units
        OR NEW.fence < OLD.fence OR NEW.joining_units < OLD.joining_units
        OR NEW.checkpoint_seq < OLD.checkpoint_seq OR NEW.pruned_seq < OLD.pruned_seq THEN
        RAISE EXCEPTION 'a head moves only forward';
    END IF;
    RETURN NEW;
END $$;

GRANT SELECT, INSERT ON amendments, pruned_totals TO sparing_api;
GRANT UPDATE, DELETE ON pruned_totals TO sparing_api;
GRANT UPDATE (piece, charge_form, slots, active, charge_units, charges, first_digest) ON ledger TO sparing_api;
GRANT UPDATE (sealed), DELETE ON pieces TO sparing_api;
"""
WAY_BACK = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM amendments) OR EXISTS (SELECT FROM heads WHERE pruned_seq > 0) THEN
        RAISE EXCEPTION 'the ledger was amended or pruned, which an earlier version cannot read';
    END IF;
END $$;
REVOKE UPDATE (piece, charge_form, slots, active, charge_units, charges, first_digest) ON ledger FROM sparing_api;
REVOKE UPDATE (sealed), DELETE ON pieces FROM sparing_api;
CREATE OR REPLACE FUNCTION only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.slots < OLD.slots OR NEW.worst_case_units < OLD.worst_case_units
        OR NEW.fence < OLD.fence OR NEW.joining_units < OLD.joining_units
        OR NEW.checkpoint_seq < OLD.checkpoint_seq THEN
        RAISE EXCEPTION 'a head moves only forward';
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER ledger_append_only ON ledger;
DROP TRIGGER ledger_only_quantities ON ledger;
DROP TRIGGER pieces_only_sealed ON pieces;
DROP FUNCTION only_quantities, only_sealed;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER pieces_append_only BEFORE UPDATE OR DELETE ON pieces FOR EACH ROW EXECUTE FUNCTION refuse_change();
DROP TABLE amendments, pruned_totals;
ALTER TABLE ledger DROP CONSTRAINT ledger_format, DROP COLUMN first_digest;
ALTER TABLE ledger ADD CONSTRAINT ledger_format CHECK (
    CASE format
        WHEN 1 THEN slots IS NOT NULL AND charge_form IS NOT NULL AND (charge_units IS NULL) <> (charges IS NULL)
        WHEN 2 THEN slots IS NULL AND charge_form IS NULL AND charge_units IS NULL AND charges IS NULL
            AND length(values_digest) = 32 AND length(salt) = 32
            AND length(pieces_digest) = 32 AND length(private_digest) = 32
        ELSE false
    END
);
ALTER TABLE heads DROP CONSTRAINT heads_pruned, DROP COLUMN pruned_seq;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(COLUMNS)
    op.execute(GUARDS)


def downgrade() -> None:
    """Back, as long as nothing was amended or pruned."""
    op.execute(WAY_BACK)
