"""Burns: entries that charge without an answer, and what joining costs after a restore.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

LEDGER = """
ALTER TABLE ledger ADD COLUMN kind text NOT NULL DEFAULT 'query' CHECK (kind IN ('query', 'burn'));
ALTER TABLE ledger DROP CONSTRAINT ledger_sigma_check;
ALTER TABLE ledger DROP CONSTRAINT ledger_dimension_check;
ALTER TABLE ledger ADD CONSTRAINT ledger_noise_check CHECK (
    CASE kind WHEN 'query' THEN sigma > 0 AND dimension > 0 ELSE sigma = 0 AND dimension = 0 END
);
CREATE INDEX ledger_burns ON ledger (dataset_id, seq) WHERE kind = 'burn';
"""

HEADS = """
ALTER TABLE heads ADD COLUMN joining_units bigint NOT NULL DEFAULT 0 CHECK (joining_units >= 0);

CREATE OR REPLACE FUNCTION only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.slots < OLD.slots OR NEW.worst_case_units < OLD.worst_case_units
        OR NEW.fence < OLD.fence OR NEW.joining_units < OLD.joining_units THEN
        RAISE EXCEPTION 'a head moves only forward';
    END IF;
    RETURN NEW;
END $$;
"""

BACK = """
CREATE OR REPLACE FUNCTION only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.slots < OLD.slots OR NEW.worst_case_units < OLD.worst_case_units THEN
        RAISE EXCEPTION 'a head moves only forward';
    END IF;
    RETURN NEW;
END $$;
ALTER TABLE heads DROP COLUMN joining_units;
DROP INDEX ledger_burns;
ALTER TABLE ledger DROP CONSTRAINT ledger_noise_check;
ALTER TABLE ledger ADD CONSTRAINT ledger_sigma_check CHECK (sigma > 0);
ALTER TABLE ledger ADD CONSTRAINT ledger_dimension_check CHECK (dimension > 0);
ALTER TABLE ledger DROP COLUMN kind;
"""


def upgrade() -> None:
    """Forward."""
    for statement in (LEDGER, HEADS):
        op.execute(statement)


def downgrade() -> None:
    """Back, unless there are burns: the constraints of the earlier schema refuse them, and nothing may remove them."""
    op.execute(BACK)
