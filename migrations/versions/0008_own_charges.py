"""What one entry has charged one slot, read in slices: an individual's receipts need no other's charges.

`charges_of` unfolds all charges of an entry; of a million people's that takes seconds.

Revision ID: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Blobs are read by `substring`, which fetches the bytes it is asked for: the rest of a toasted value stays where it is.
# A list is sorted, and its numbers are of one width and big-endian, so that their bytes compare as they do.
FUNCTION = """
CREATE FUNCTION charge_of(
    slot integer, form smallint, slots bytea, active bytea, charge_units bigint, charges bytea,
    OUT outcome text, OUT units bigint
) LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    wanted constant bytea := int4send(slot);
    listed bytea;
    bits integer;     -- the byte of a bitmap in which the wanted bit stands
    place bigint;     -- how many touched slots, and then how many charged ones, come before
    after_place bigint;
    middle bigint;
BEGIN
    outcome := 'untouched';
    units := 0;
    IF form = 1 THEN
        IF slot / 8 >= length(slots) THEN
            RETURN;
        END IF;
        bits := get_byte(substring(slots FROM slot / 8 + 1 FOR 1), 0);
        IF (bits >> (7 - slot % 8)) & 1 = 0 THEN
            RETURN;
        END IF;
        IF active IS NOT NULL OR charges IS NOT NULL THEN
            place := bit_count(substring(slots FROM 1 FOR slot / 8)) + bit_count((bits >> (8 - slot % 8))::bit(8));
        END IF;
    ELSE
        listed := substring(slots FROM 1);  -- fetched once: every step of the search would fetch its part anew
        place := 0;
        after_place := length(listed) / 4;
        WHILE place < after_place LOOP
            middle := (place + after_place) / 2;
            IF substring(listed FROM (4 * middle + 1)::integer FOR 4) < wanted THEN
                place := middle + 1;
            ELSE
                after_place := middle;
            END IF;
        END LOOP;
        IF substring(listed FROM (4 * place + 1)::integer FOR 4) <> wanted THEN
            RETURN;
        END IF;
    END IF;
    IF active IS NOT NULL THEN
        bits := get_byte(substring(active FROM (place / 8 + 1)::integer FOR 1), 0);
        IF (bits >> (7 - place % 8)::integer) & 1 = 0 THEN
            outcome := 'left_out';
            RETURN;
        END IF;
        place := bit_count(substring(active FROM 1 FOR (place / 8)::integer))
            + bit_count((bits >> (8 - place % 8)::integer)::bit(8));
    END IF;
    outcome := 'charged';
    units := coalesce(charge_units, int8_at(charges, place));
END $$;
"""


def upgrade() -> None:
    """Forward."""
    op.execute(FUNCTION)


def downgrade() -> None:
    """Back."""
    op.execute("DROP FUNCTION charge_of")
