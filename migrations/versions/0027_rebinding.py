"""A principal that an identity provider vouches for may get another role, which no other principal may.

Revision ID: 0027
Revises: 0026
"""

from alembic import op

revision = "0027"
down_revision = "0026"

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


def upgrade() -> None:
    """Add the function, and an index by which the sign-ins of a principal are found."""
    op.execute(REBINDING)
    op.execute("CREATE INDEX sign_ins_principal ON sign_ins (principal_id)")
