"""The house: datasets, their heads, the ledger, accounts, pages, replies and principals.

Revision ID: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ROLES = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'sparing_api') THEN
        CREATE ROLE sparing_api NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this cluster was quicker
END $$;
GRANT sparing_api TO CURRENT_USER;
"""

TABLES = """
CREATE TABLE datasets (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    epsilon text,
    delta text,
    budget_units bigint NOT NULL CHECK (budget_units > 0 AND budget_units <= 2305843009213693952),
    limit_floor_units bigint NOT NULL CHECK (limit_floor_units >= 0 AND limit_floor_units <= budget_units),
    capacity bigint NOT NULL CHECK (capacity > 0),
    rule text NOT NULL CHECK (rule = 'skip'),
    schema jsonb NOT NULL,
    genesis bytea NOT NULL CHECK (length(genesis) = 32),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE heads (
    dataset_id integer PRIMARY KEY REFERENCES datasets,
    seq bigint NOT NULL DEFAULT 0,
    hash bytea NOT NULL CHECK (length(hash) = 32),
    epoch integer NOT NULL DEFAULT 1,
    fence bigint NOT NULL DEFAULT 1,
    data_version bigint NOT NULL DEFAULT 0,
    slots bigint NOT NULL DEFAULT 0,
    worst_case_units bigint NOT NULL DEFAULT 0,
    checkpoint_seq bigint NOT NULL DEFAULT 0 CHECK (checkpoint_seq <= seq),
    journal_hash bytea NOT NULL CHECK (length(journal_hash) = 32)
);

CREATE TABLE ledger (
    dataset_id integer NOT NULL REFERENCES datasets,
    seq bigint NOT NULL CHECK (seq > 0),
    query_id uuid NOT NULL UNIQUE,
    analyst_id uuid NOT NULL,
    analyst text NOT NULL,
    epoch integer NOT NULL,
    canonical bytea NOT NULL,
    query_hash text NOT NULL,
    sigma double precision NOT NULL CHECK (sigma > 0),
    grid_log2 integer NOT NULL,
    dimension integer NOT NULL CHECK (dimension > 0),
    worst_case_units bigint NOT NULL CHECK (worst_case_units >= 0),
    worst_case_total_units bigint NOT NULL CHECK (worst_case_total_units >= worst_case_units),
    charge_form smallint NOT NULL CHECK (charge_form IN (0, 1)),
    slots bytea NOT NULL,
    active bytea,
    charge_units bigint CHECK (charge_units >= 0),
    charges bytea,
    charged_count integer NOT NULL CHECK (charged_count >= 0),
    left_out_count integer NOT NULL CHECK (left_out_count >= 0),
    charged_units numeric NOT NULL CHECK (charged_units >= 0),
    "values" bytea NOT NULL,
    asked_at timestamptz NOT NULL,
    previous_hash bytea NOT NULL CHECK (length(previous_hash) = 32),
    hash bytea NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (dataset_id, seq),
    CHECK ((charge_units IS NULL) <> (charges IS NULL)),
    CHECK (length("values") = 8 * dimension)
);
CREATE INDEX ledger_reuse ON ledger (dataset_id, query_hash, epoch, seq);

CREATE TABLE answers (
    dataset_id integer NOT NULL REFERENCES datasets,
    principal_id uuid NOT NULL,
    idempotency_key text NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 128),
    request_hash bytea NOT NULL CHECK (length(request_hash) = 32),
    seq bigint NOT NULL,
    query_id uuid NOT NULL,
    body bytea NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (dataset_id, principal_id, idempotency_key),
    FOREIGN KEY (dataset_id, seq) REFERENCES ledger
);
CREATE INDEX answers_of_principal ON answers (principal_id, at, query_id);

CREATE TABLE worst_cases (
    dataset_id integer NOT NULL REFERENCES datasets,
    principal_id uuid NOT NULL,
    units bigint NOT NULL CHECK (units >= 0),
    PRIMARY KEY (dataset_id, principal_id)
);

CREATE TABLE individuals (
    dataset_id integer NOT NULL REFERENCES datasets,
    slot integer NOT NULL CHECK (slot >= 0),
    key text,
    tombstone bytea CHECK (length(tombstone) = 32),
    limit_units bigint NOT NULL CHECK (limit_units >= 0 AND limit_units <= 2305843009213693952),
    PRIMARY KEY (dataset_id, slot),
    CHECK ((key IS NULL) <> (tombstone IS NULL))
);
CREATE UNIQUE INDEX individuals_key ON individuals (dataset_id, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX individuals_tombstone ON individuals (dataset_id, tombstone) WHERE tombstone IS NOT NULL;

CREATE TABLE pages (
    dataset_id integer NOT NULL REFERENCES datasets,
    page integer NOT NULL CHECK (page >= 0),
    seq bigint NOT NULL,
    spent bytea NOT NULL CHECK (length(spent) = 524288),
    PRIMARY KEY (dataset_id, page)
);

CREATE TABLE journal (
    dataset_id integer NOT NULL REFERENCES datasets,
    number bigint NOT NULL CHECK (number > 0),
    at_seq bigint NOT NULL,
    act text NOT NULL,
    detail jsonb NOT NULL,
    at timestamptz NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (dataset_id, number)
);

CREATE TABLE principals (
    id uuid PRIMARY KEY,
    role text NOT NULL CHECK (role IN ('curator', 'analyst', 'individual', 'auditor')),
    name text NOT NULL,
    dataset text REFERENCES datasets (name),
    individual text,
    allowance_units bigint CHECK (allowance_units >= 0),
    key_hash bytea NOT NULL CHECK (length(key_hash) = 32),
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);

-- Blobs are read in slices and do not compress: noise has no pattern.
ALTER TABLE pages ALTER COLUMN spent SET STORAGE EXTERNAL;
ALTER TABLE ledger ALTER COLUMN "values" SET STORAGE EXTERNAL;
ALTER TABLE ledger ALTER COLUMN charges SET STORAGE EXTERNAL;
ALTER TABLE ledger ALTER COLUMN slots SET STORAGE EXTERNAL;
ALTER TABLE answers ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE SCHEMA records;
"""

GUARDS = """
-- The second half of a paired assertion: what the core refuses, the database refuses too.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_no_truncate BEFORE TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER answers_append_only BEFORE UPDATE OR DELETE ON answers FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER answers_no_truncate BEFORE TRUNCATE ON answers FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER journal_append_only BEFORE UPDATE OR DELETE ON journal FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE FUNCTION only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.slots < OLD.slots OR NEW.worst_case_units < OLD.worst_case_units THEN
        RAISE EXCEPTION 'a head moves only forward';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER heads_forward BEFORE UPDATE ON heads FOR EACH ROW EXECUTE FUNCTION only_forward();
"""

READING = """
-- int64, big-endian, number `place` (from 0) of a blob.
CREATE FUNCTION int8_at(blob bytea, place bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || encode(substring(blob FROM (8 * place + 1)::int FOR 8), 'hex'))::bit(64)::bigint
$$;

-- Bit number `place` (from 0) of a bitmap whose first bit is the most significant one of its first byte.
CREATE FUNCTION bit_at(bitmap bytea, place bigint) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT get_bit(bitmap, (place / 8) * 8 + 7 - place % 8) = 1
$$;

-- Who was charged what by one entry: the SQL reading of EncodedCharges.
CREATE FUNCTION charges_of(form smallint, slots bytea, active bytea, charge_units bigint, charges bytea)
RETURNS TABLE (slot bigint, units bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    WITH touched AS (
        SELECT ('x' || encode(substring(slots FROM (4 * n + 1)::int FOR 4), 'hex'))::bit(32)::int::bigint AS slot, n AS
        place
        FROM generate_series(0, length(slots) / 4 - 1) AS n WHERE form = 0
        UNION ALL
        SELECT n AS slot, row_number() OVER (ORDER BY n) - 1 AS place
        FROM generate_series(0::bigint, length(slots) * 8 - 1) AS n WHERE form = 1 AND bit_at(slots, n)
    ), charged AS (
        SELECT slot, row_number() OVER (ORDER BY slot) - 1 AS place
        FROM touched WHERE active IS NULL OR bit_at(active, place)
    )
    SELECT slot, coalesce(charge_units, int8_at(charges, place)) FROM charged
$$;

-- One row per individual: what the pages say plus the entries since.
CREATE VIEW budgets AS
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
"""

GRANTS = """
GRANT USAGE ON SCHEMA public TO sparing_api;
GRANT CREATE, USAGE ON SCHEMA records TO sparing_api;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO sparing_api;
GRANT INSERT ON datasets, heads, ledger, answers, worst_cases, individuals, pages, journal, principals TO sparing_api;
GRANT UPDATE ON heads, worst_cases, pages TO sparing_api;
GRANT UPDATE (key, tombstone, limit_units) ON individuals TO sparing_api;
GRANT UPDATE (revoked_at) ON principals TO sparing_api;
"""


def upgrade() -> None:
    """Forward."""
    for statement in (ROLES, TABLES, GUARDS, READING, GRANTS):
        op.execute(statement)


def downgrade() -> None:
    """Back to nothing; the role stays, since other databases of the cluster may use it."""
    op.execute("DROP VIEW budgets")
    op.execute("DROP FUNCTION charges_of, bit_at, int8_at")
    op.execute("DROP SCHEMA records CASCADE")
    for table in (
        "principals",
        "journal",
        "pages",
        "individuals",
        "worst_cases",
        "answers",
        "ledger",
        "heads",
        "datasets",
    ):
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP FUNCTION refuse_change, only_forward")
