"""The baseline makes all tables of the first release. The steps before it, 0001 to 0030, were never released.

It is frozen when it is released: later changes are migrations of their own, and `migrations/tables.py` is compared
with what all of them make together. There is no way back from here, because nothing came before.

Revision ID: 0031
Revises:
"""

from alembic import op

revision = "0031"
down_revision = None

DATASETS = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'sparing_api') THEN
        CREATE ROLE sparing_api NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this cluster was quicker
END $$;
GRANT sparing_api TO CURRENT_USER;
CREATE SCHEMA records;

CREATE TABLE datasets (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, epsilon text, delta text,
    budget_units bigint NOT NULL CHECK (budget_units > 0 AND budget_units <= 2305843009213693952),
    limit_floor_units bigint NOT NULL CHECK (limit_floor_units >= 0 AND limit_floor_units <= budget_units),
    capacity bigint NOT NULL CHECK (capacity > 0), rule text NOT NULL CHECK (rule IN ('skip', 'drop')),
    schema jsonb NOT NULL, genesis bytea NOT NULL CHECK (length(genesis) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    version integer NOT NULL DEFAULT 1 CHECK (version >= 1), instance integer NOT NULL DEFAULT 1 CHECK (instance >= 1),
    archived_at timestamptz, accounting jsonb NOT NULL, monitor jsonb, salt bytea NOT NULL,
    keys text NOT NULL CHECK (keys IN ('exact', 'caseless', 'number', 'uuid')));
CREATE TABLE registrations (  -- what extensions have replaced
    dataset_id integer NOT NULL REFERENCES datasets, version integer NOT NULL CHECK (version >= 1),
    until_seq bigint NOT NULL CHECK (until_seq >= 0), capacity bigint NOT NULL, schema jsonb NOT NULL,
    PRIMARY KEY (dataset_id, version));
-- How many datasets had a name before: a registration that is made again has a genesis of its own.
CREATE TABLE deletions (name text COLLATE "C" PRIMARY KEY, datasets integer NOT NULL CHECK (datasets >= 1));
CREATE TABLE heads (
    dataset_id integer PRIMARY KEY REFERENCES datasets, seq bigint NOT NULL DEFAULT 0,
    hash bytea NOT NULL CHECK (length(hash) = 32), epoch integer NOT NULL DEFAULT 1, fence bigint NOT NULL DEFAULT 1,
    data_version bigint NOT NULL DEFAULT 0, slots bigint NOT NULL DEFAULT 0, worst_case_units bigint NOT NULL DEFAULT 0,
    checkpoint_seq bigint NOT NULL DEFAULT 0 CHECK (checkpoint_seq <= seq),
    journal_hash bytea NOT NULL CHECK (length(journal_hash) = 32),
    joining_units bigint NOT NULL DEFAULT 0 CHECK (joining_units >= 0),
    pruned_seq bigint NOT NULL DEFAULT 0 CONSTRAINT heads_pruned CHECK (pruned_seq <= checkpoint_seq));
-- Unlogged: a renewal every second then costs no write-ahead log and no sync. A crash of Postgres empties the table,
-- and the processes claim their datasets anew.
CREATE UNLOGGED TABLE dataset_owners (
    dataset_id integer PRIMARY KEY REFERENCES datasets, replica uuid NOT NULL, url text NOT NULL,
    expires_at timestamptz NOT NULL);
CREATE TABLE pepper (  -- a keyed hash of a random salt, by which a start under another pepper is refused
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), salt bytea NOT NULL CHECK (length(salt) = 32),
    proof bytea NOT NULL CHECK (length(proof) = 32));
"""

# Blobs are read in slices and do not compress: noise has no pattern, and neither has what is sealed.
LEDGER = """
CREATE TABLE ledger (
    dataset_id integer NOT NULL REFERENCES datasets, seq bigint NOT NULL CHECK (seq > 0),
    query_id uuid NOT NULL UNIQUE, analyst_id uuid NOT NULL, analyst text NOT NULL, epoch integer NOT NULL,
    canonical bytea NOT NULL, query_hash text NOT NULL,
    sigma double precision NOT NULL, grid_log2 integer NOT NULL, dimension integer NOT NULL,
    worst_case_units bigint NOT NULL CHECK (worst_case_units >= 0),
    worst_case_total_units bigint NOT NULL CHECK (worst_case_total_units >= worst_case_units),
    charged_count integer NOT NULL CHECK (charged_count >= 0),
    left_out_count integer NOT NULL CHECK (left_out_count >= 0),
    charged_units numeric NOT NULL CHECK (charged_units >= 0),
    "values" bytea STORAGE EXTERNAL NOT NULL, asked_at timestamptz NOT NULL,
    previous_hash bytea NOT NULL CHECK (length(previous_hash) = 32), hash bytea NOT NULL CHECK (length(hash) = 32),
    kind text NOT NULL CHECK (kind IN ('query', 'burn')), format smallint NOT NULL CHECK (format = 2),
    mechanism text NOT NULL, values_digest bytea NOT NULL CHECK (length(values_digest) = 32),
    salt bytea NOT NULL CHECK (length(salt) = 32), pieces_digest bytea NOT NULL CHECK (length(pieces_digest) = 32),
    private_digest bytea NOT NULL CHECK (length(private_digest) = 32), answer_digest bytea NOT NULL,
    acts bigint NOT NULL, acts_hash bytea NOT NULL, settled bytea NOT NULL,
    piece bytea STORAGE EXTERNAL, first_digest bytea NOT NULL,
    sigmas bytea NOT NULL DEFAULT '' CHECK (length(sigmas) % 8 = 0),
    PRIMARY KEY (dataset_id, seq), CHECK (length("values") = 8 * dimension),
    CONSTRAINT ledger_noise_check CHECK (
        CASE kind WHEN 'query' THEN sigma > 0 AND dimension > 0 ELSE sigma = 0 AND dimension = 0 END));
-- The query comes first: no plan then takes this index for a look-up by dataset and sequence.
CREATE INDEX ledger_reuse ON ledger (query_hash, dataset_id, epoch, seq);
CREATE INDEX ledger_burns ON ledger (dataset_id, seq) WHERE kind = 'burn';
CREATE INDEX ledger_ticks ON ledger (dataset_id, seq) WHERE mechanism LIKE 'gaussian prepaid %';
CREATE INDEX ledger_other_noise ON ledger (dataset_id) WHERE mechanism NOT LIKE 'gaussian%';
CREATE TABLE pieces (
    dataset_id integer NOT NULL, seq bigint NOT NULL, number integer NOT NULL CHECK (number >= 0),
    digest bytea NOT NULL CHECK (length(digest) = 32), sealed bytea STORAGE EXTERNAL,
    PRIMARY KEY (dataset_id, seq, number));
CREATE TABLE amendments (
    dataset_id integer NOT NULL, seq bigint NOT NULL, number integer NOT NULL, erasure bigint NOT NULL,
    old_digest bytea NOT NULL CHECK (length(old_digest) = 32),
    new_digest bytea NOT NULL CHECK (length(new_digest) = 32), PRIMARY KEY (dataset_id, seq, number, erasure));
CREATE TABLE answers (
    dataset_id integer NOT NULL, principal_id uuid NOT NULL,
    idempotency_key text NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 128),
    request_hash bytea NOT NULL CHECK (length(request_hash) = 32), seq bigint NOT NULL, query_id uuid NOT NULL,
    body bytea STORAGE EXTERNAL NOT NULL, at timestamptz NOT NULL, asked_form bytea,
    PRIMARY KEY (dataset_id, principal_id, idempotency_key), FOREIGN KEY (dataset_id, seq) REFERENCES ledger);
CREATE INDEX answers_of_principal ON answers (principal_id, at, dataset_id, seq, idempotency_key COLLATE "C");
CREATE TABLE parameters (
    dataset_id integer NOT NULL REFERENCES datasets, principal_id uuid NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32), classes integer NOT NULL CHECK (classes >= 0),
    numbers bytea STORAGE EXTERNAL NOT NULL CHECK (length(numbers) > 0 AND length(numbers) % 8 = 0),
    PRIMARY KEY (dataset_id, principal_id, sha256));
CREATE TABLE worst_cases (
    dataset_id integer NOT NULL REFERENCES datasets, principal_id uuid NOT NULL,
    units bigint NOT NULL CHECK (units >= 0), PRIMARY KEY (dataset_id, principal_id));
CREATE TABLE journal (
    dataset_id integer NOT NULL REFERENCES datasets, number bigint NOT NULL CHECK (number > 0), at_seq bigint NOT NULL,
    act text NOT NULL, detail jsonb NOT NULL, at timestamptz NOT NULL, previous_hash bytea NOT NULL,
    hash bytea NOT NULL CHECK (length(hash) = 32), PRIMARY KEY (dataset_id, number));
CREATE INDEX journal_acts ON journal (dataset_id, act, number);
CREATE INDEX journal_slots ON journal (dataset_id, (detail ->> 'slot'), number);
"""

# Individuals do not refer to their dataset: the check of each row took more than half of a large upload, and the
# transaction has locked the dataset's head, which does refer to it.
PEOPLE = """
CREATE TABLE individuals (
    dataset_id integer NOT NULL, slot integer NOT NULL CHECK (slot >= 0), key text,
    tombstone bytea CHECK (length(tombstone) = 32),
    limit_units bigint NOT NULL CHECK (limit_units >= 0 AND limit_units <= 2305843009213693952),
    paused boolean NOT NULL DEFAULT false, plain text,
    PRIMARY KEY (dataset_id, slot), CHECK ((key IS NULL) <> (tombstone IS NULL)), CHECK (plain <> key));
CREATE UNIQUE INDEX individuals_key ON individuals (dataset_id, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX individuals_tombstone ON individuals (dataset_id, tombstone) WHERE tombstone IS NOT NULL;
CREATE INDEX individuals_plain ON individuals (dataset_id, plain) WHERE plain IS NOT NULL;
CREATE TABLE pages (
    dataset_id integer NOT NULL REFERENCES datasets, page integer NOT NULL CHECK (page >= 0), seq bigint NOT NULL,
    spent bytea STORAGE EXTERNAL NOT NULL CHECK (length(spent) = 524288),
    charged bytea STORAGE EXTERNAL NOT NULL CHECK (length(charged) = 262144),
    left_out bytea STORAGE EXTERNAL NOT NULL CHECK (length(left_out) = 262144),
    ticks bytea STORAGE EXTERNAL NOT NULL DEFAULT '' CHECK (length(ticks) IN (0, 131072)),
    PRIMARY KEY (dataset_id, page));
CREATE TABLE pruned_totals (LIKE pages INCLUDING ALL, FOREIGN KEY (dataset_id) REFERENCES datasets);
CREATE TABLE keyed_uploads (
    dataset_id integer NOT NULL REFERENCES datasets, principal_id uuid NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 128),
    digest bytea NOT NULL CHECK (length(digest) = 32), report bytea NOT NULL,
    PRIMARY KEY (dataset_id, principal_id, idempotency_key));
CREATE TABLE principals (
    id uuid PRIMARY KEY, role text NOT NULL CHECK (role IN ('curator', 'analyst', 'individual', 'auditor')),
    name text NOT NULL, dataset text REFERENCES datasets (name), individual text,
    allowance_units bigint CHECK (allowance_units >= 0), key_hash bytea NOT NULL CHECK (length(key_hash) = 32),
    created_at timestamptz NOT NULL, revoked_at timestamptz, organisation text, purpose text, expires_at timestamptz);
CREATE INDEX principals_individual ON principals (dataset, individual) WHERE individual IS NOT NULL;
CREATE TABLE sign_ins (  -- `key_hash` is of the API key: a principal whose key was replaced is signed out everywhere
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    principal_id uuid NOT NULL REFERENCES principals ON DELETE CASCADE, key_hash bytea NOT NULL,
    began_at timestamptz NOT NULL, expires_at timestamptz NOT NULL);
CREATE INDEX sign_ins_expiry ON sign_ins (expires_at);
CREATE INDEX sign_ins_principal ON sign_ins (principal_id);
CREATE TABLE summary_points (
    dataset_id integer NOT NULL REFERENCES datasets, seq bigint NOT NULL, at timestamptz NOT NULL,
    detail jsonb NOT NULL, PRIMARY KEY (dataset_id, seq));
CREATE TABLE alarms (
    dataset_id integer PRIMARY KEY REFERENCES datasets,
    share double precision NOT NULL CHECK (share > 0 AND share <= 1), rang_seq bigint);
"""

# The second half of a paired assertion: what the core refuses, the database refuses too.
GUARDS = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE FUNCTION only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.slots < OLD.slots OR NEW.worst_case_units < OLD.worst_case_units
        OR NEW.fence < OLD.fence OR NEW.joining_units < OLD.joining_units
        OR NEW.checkpoint_seq < OLD.checkpoint_seq OR NEW.pruned_seq < OLD.pruned_seq THEN
        RAISE EXCEPTION 'a head moves only forward';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION page_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq THEN RAISE EXCEPTION 'a page moves only forward'; END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION only_quantities() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    rest ledger := NEW;
BEGIN
    rest.piece := OLD.piece;
    rest.first_digest := OLD.first_digest;
    IF rest IS DISTINCT FROM OLD THEN RAISE EXCEPTION 'ledger is append-only'; END IF;
    IF length(OLD.first_digest) > 0 AND NEW.first_digest <> OLD.first_digest THEN
        RAISE EXCEPTION 'the first digest of a row of ledger is written once';
    END IF;
    IF NEW.piece IS NULL AND OLD.piece IS NOT NULL
        AND NEW.seq > (SELECT pruned_seq FROM heads WHERE dataset_id = NEW.dataset_id) THEN
        RAISE EXCEPTION 'ledger is append-only behind what is pruned';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION only_sealed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.seq > (SELECT pruned_seq FROM heads WHERE dataset_id = OLD.dataset_id) THEN
            RAISE EXCEPTION 'pieces is append-only behind what is pruned';
        END IF;
        RETURN OLD;
    END IF;
    IF (NEW.dataset_id, NEW.seq, NEW.number, NEW.digest) IS DISTINCT FROM
        (OLD.dataset_id, OLD.seq, OLD.number, OLD.digest) OR NEW.sealed IS NULL THEN
        RAISE EXCEPTION 'pieces is append-only';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER heads_forward BEFORE UPDATE ON heads FOR EACH ROW EXECUTE FUNCTION only_forward();
CREATE TRIGGER pages_forward BEFORE UPDATE ON pages FOR EACH ROW EXECUTE FUNCTION page_forward();
CREATE TRIGGER ledger_append_only BEFORE DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_only_quantities BEFORE UPDATE ON ledger FOR EACH ROW EXECUTE FUNCTION only_quantities();
CREATE TRIGGER pieces_only_sealed BEFORE UPDATE OR DELETE ON pieces FOR EACH ROW EXECUTE FUNCTION only_sealed();
"""
REFUSALS = {
    "answers, parameters, journal, amendments, pepper": "{0}_append_only BEFORE UPDATE OR DELETE ON {0} FOR EACH ROW",
    "ledger, answers, parameters, amendments, pieces": "{0}_no_truncate BEFORE TRUNCATE ON {0} FOR EACH STATEMENT",
}

# It runs as its owner, because the service's own role may delete no dataset and no act.
DELETION = """
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
    DELETE FROM public.individuals WHERE dataset_id = deleted; DELETE FROM public.pages WHERE dataset_id = deleted;
    DELETE FROM public.keyed_uploads WHERE dataset_id = deleted; DELETE FROM public.alarms WHERE dataset_id = deleted;
    DELETE FROM public.worst_cases WHERE dataset_id = deleted; DELETE FROM public.heads WHERE dataset_id = deleted;
    DELETE FROM public.summary_points WHERE dataset_id = deleted;
    DELETE FROM public.dataset_owners WHERE dataset_id = deleted;
    DELETE FROM public.registrations WHERE dataset_id = deleted; DELETE FROM public.datasets WHERE id = deleted;
END $$;
REVOKE ALL ON FUNCTION delete_dataset(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delete_dataset(integer) TO sparing_api;
"""

# It runs as its owner, because the service's own role may change no role: a principal with a key keeps its own.
REBINDING = """
CREATE FUNCTION rebind_principal(
    rebound uuid, its_role text, its_dataset text, its_individual text, its_name text, its_allowance bigint,
    its_organisation text, its_purpose text, its_end timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    UPDATE public.principals SET role = its_role, dataset = its_dataset, individual = its_individual, name = its_name,
        allowance_units = its_allowance, organisation = its_organisation, purpose = its_purpose, expires_at = its_end
    WHERE id = rebound AND revoked_at IS NULL AND key_hash = decode(repeat('00', 32), 'hex')
        AND (role, dataset, individual) IS DISTINCT FROM (its_role, its_dataset, its_individual);
    IF NOT FOUND THEN RETURN false; END IF;
    DELETE FROM public.sign_ins WHERE principal_id = rebound;
    RETURN true;
END $$;
REVOKE ALL ON FUNCTION rebind_principal(uuid, text, text, text, text, bigint, text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rebind_principal(uuid, text, text, text, text, bigint, text, text, timestamptz)
    TO sparing_api;
"""

READING = """
-- int64, big-endian, number `place` (from 0) of a blob; and uint32.
CREATE FUNCTION int8_at(blob bytea, place bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || encode(substring(blob FROM (8 * place + 1)::int FOR 8), 'hex'))::bit(64)::bigint
$$;
CREATE FUNCTION uint4_at(blob bytea, place bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || encode(substring(blob FROM (4 * place + 1)::int FOR 4), 'hex'))::bit(32)::bigint
$$;
-- The entries since are sealed, and in no view: each row says up to which entry all charges are in it.
CREATE VIEW budgets AS
SELECT d.name AS dataset, i.slot, i.key, i.limit_units AS budget_units,
       coalesce(int8_at(p.spent, i.slot % 65536), 0) AS spent_units, greatest(h.checkpoint_seq, p.seq) AS at_seq
FROM individuals i
JOIN datasets d ON d.id = i.dataset_id
JOIN heads h ON h.dataset_id = i.dataset_id
LEFT JOIN pages p ON p.dataset_id = i.dataset_id AND p.page = i.slot / 65536;
"""

GRANTS = """
GRANT USAGE ON SCHEMA public TO sparing_api;
GRANT CREATE, USAGE ON SCHEMA records TO sparing_api;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO sparing_api;
GRANT INSERT ON datasets, registrations, heads, dataset_owners, pepper, ledger, pieces, amendments, answers,
    parameters, worst_cases, journal, individuals, pages, pruned_totals, keyed_uploads, principals, sign_ins,
    summary_points, alarms TO sparing_api;
GRANT UPDATE ON heads, dataset_owners, worst_cases, pages, pruned_totals TO sparing_api;
GRANT UPDATE (capacity, schema, version, archived_at) ON datasets TO sparing_api;
GRANT UPDATE (piece, first_digest) ON ledger TO sparing_api;
GRANT UPDATE (sealed) ON pieces TO sparing_api;
GRANT UPDATE (key, plain, tombstone, limit_units, paused) ON individuals TO sparing_api;
GRANT UPDATE (individual, name, allowance_units, key_hash, organisation, purpose, expires_at, revoked_at) ON principals
    TO sparing_api;
GRANT UPDATE (expires_at) ON sign_ins TO sparing_api;
GRANT UPDATE (share, rang_seq) ON alarms TO sparing_api;
GRANT DELETE ON pieces, pruned_totals, sign_ins, summary_points, alarms TO sparing_api;
"""


def upgrade() -> None:
    """Make all tables."""
    for statement in (DATASETS, LEDGER, PEOPLE, GUARDS, DELETION, REBINDING, READING, GRANTS):
        op.execute(statement)
    for tables, refusal in REFUSALS.items():
        for table in tables.split(", "):
            op.execute(f"CREATE TRIGGER {refusal.format(table)} EXECUTE FUNCTION refuse_change()")
