"""Pages are written beside the line: each stands at a sequence of its own, and neither they nor the checkpoint go back.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

FORWARD = """
CREATE OR REPLACE FUNCTION only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.slots < OLD.slots OR NEW.worst_case_units < OLD.worst_case_units
        OR NEW.fence < OLD.fence OR NEW.joining_units < OLD.joining_units
        OR NEW.checkpoint_seq < OLD.checkpoint_seq THEN
        RAISE EXCEPTION 'a head moves only forward';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION page_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq THEN
        RAISE EXCEPTION 'a page moves only forward';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER pages_forward BEFORE UPDATE ON pages FOR EACH ROW EXECUTE FUNCTION page_forward();
"""

# A page that was stored after the checkpoint has some of the entries since in it already.
VIEW = """
CREATE OR REPLACE VIEW budgets AS
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
"""

BACK = """
DROP TRIGGER pages_forward ON pages;
DROP FUNCTION page_forward;
-- Pages that are ahead of the checkpoint mean nothing to the earlier code, which would charge the entries since twice.
DO $$ BEGIN
    IF EXISTS (SELECT FROM pages p JOIN heads h USING (dataset_id) WHERE p.seq > h.checkpoint_seq) THEN
        RAISE EXCEPTION 'a checkpoint is half written; stop the service in order before going back';
    END IF;
END $$;
CREATE OR REPLACE VIEW budgets AS
WITH tail AS (
    SELECT l.dataset_id, c.slot, sum(c.units) AS units
    FROM ledger l
    JOIN heads h ON h.dataset_id = l.dataset_id AND l.seq > h.checkpoint_seq
    CROSS JOIN LATERAL charges_of(l.charge_form, l.slots, l.active, l.charge_units, l.charges) c
    GROUP BY l.dataset_id, c.slot
)
SELECT d.name AS dataset, i.slot, i.key, i.limit_units AS budget_units,
       coalesce(int8_at(p.spent, i.slot % 65536), 0) + coalesce(t.units, 0) AS spent_units
FROM individuals i
JOIN datasets d ON d.id = i.dataset_id
LEFT JOIN pages p ON p.dataset_id = i.dataset_id AND p.page = i.slot / 65536
LEFT JOIN tail t ON t.dataset_id = i.dataset_id AND t.slot = i.slot;
CREATE OR REPLACE FUNCTION only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.slots < OLD.slots OR NEW.worst_case_units < OLD.worst_case_units
        OR NEW.fence < OLD.fence OR NEW.joining_units < OLD.joining_units THEN
        RAISE EXCEPTION 'a head moves only forward';
    END IF;
    RETURN NEW;
END $$;
"""


def upgrade() -> None:
    """Forward."""
    for statement in (FORWARD, VIEW):
        op.execute(statement)


def downgrade() -> None:
    """Back, unless a checkpoint is half written."""
    op.execute(BACK)
