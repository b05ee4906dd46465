"""A pause is a flag beside the limit; before, it lowered the limit to what was spent.

Whoever paused before this migration gets back the limit that was lost with the pause, as far as journal and
registration tell it, and stays paused. Where they do not tell it, the limit stays as low as it is. An act of the
journal says so of each.

Revision ID: 0009
Revises: 0008
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import rfc8785
from alembic import op
from sqlalchemy import Connection, text

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

COLUMN = """
ALTER TABLE individuals ADD COLUMN paused boolean NOT NULL DEFAULT false;
GRANT UPDATE (paused) ON individuals TO sparing_api;
"""

# Of people who have ever lowered a limit and were never erased: of who was, the journal does not tell under which limit
# they came back.
LIMITS = """
SELECT (detail->>'slot')::integer AS slot, at_seq, (detail->>'limit_units')::bigint AS units
FROM journal l JOIN individuals i ON i.dataset_id = l.dataset_id AND i.slot = (detail->>'slot')::integer
WHERE l.dataset_id = :dataset AND act = 'limit' AND NOT EXISTS (
    SELECT FROM journal e WHERE e.dataset_id = :dataset AND act = 'erase' AND e.detail->>'slot' = l.detail->>'slot'
) ORDER BY 1, number
"""
SPENT = """
SELECT i.slot, i.limit_units, coalesce(int8_at(spent, i.slot % 65536), 0) + coalesce((
    SELECT sum(units) FROM ledger l
    CROSS JOIN LATERAL charge_of(i.slot, charge_form, slots, active, charge_units, charges)
    WHERE l.dataset_id = i.dataset_id AND l.seq > greatest(checkpoint_seq, pages.seq)
), 0) FROM individuals i JOIN heads USING (dataset_id)
LEFT JOIN pages ON pages.dataset_id = i.dataset_id AND page = i.slot / 65536
WHERE i.dataset_id = :dataset AND i.slot = ANY(:slots)
"""
ENTRIES = """
SELECT seq, charge_form, slots, active FROM ledger WHERE dataset_id = :dataset AND seq > :after ORDER BY seq
"""
BURNS = "SELECT seq, worst_case_units FROM ledger WHERE dataset_id = :dataset AND kind = 'burn'"
WAY_BACK = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM individuals WHERE paused) THEN
        RAISE EXCEPTION 'somebody has paused: an earlier version would charge them';
    END IF;
END $$;
ALTER TABLE individuals DROP COLUMN paused;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """The last lowering of a limit that is still in force, after `at_seq`, and the limit before it."""

    slot: int
    at_seq: int
    units: int
    before_units: int


def upgrade() -> None:
    """Forward."""
    op.execute(COLUMN)
    connection = op.get_bind()
    datasets = connection.execute(
        text("SELECT id, budget_units - joining_units, schema FROM datasets JOIN heads ON dataset_id = id ORDER BY id")
    ).fetchall()
    for dataset, joined_units, schema in datasets:
        # Whoever joined had at least this much, unless they brought a limit of their own.
        usual = None if _brings_limits(schema) else max(joined_units, 0)
        for each in _paused(connection, dataset, usual):
            _adopt(connection, dataset, each)


def downgrade() -> None:
    """Back, as long as nobody has paused."""
    op.execute(WAY_BACK)


def _brings_limits(schema: dict[str, Any]) -> bool:
    columns = [column for table in schema.values() for column in table["columns"].values()]
    return any(column["type"] == "budget" for column in columns)


def _paused(connection: Connection, dataset: int, usual: int | None) -> list[Lowered]:
    """Those whose limit was lowered to exactly what was spent, which is what a pause was."""
    lowered = {each.slot: each for each in _lowered(connection, dataset, usual)}
    if not lowered:
        return []
    accounts = connection.execute(text(SPENT), {"dataset": dataset, "slots": list(lowered)}).fetchall()
    closed = [lowered[slot] for slot, limit, spent in accounts if spent == limit == lowered[slot].units]
    last = _last_charged(connection, dataset, closed)
    return [each for each in closed if last[each.slot] <= each.at_seq]


def _lowered(connection: Connection, dataset: int, usual: int | None) -> Iterator[Lowered]:
    rows = connection.execute(text(LIMITS), {"dataset": dataset}).fetchall()
    for slot, acts in groupby(rows, key=lambda row: row.slot):
        history = list(acts)
        last = history[-1].units
        earlier = [act.units for act in history if act.units > last]  # limits only fall
        before = earlier[-1] if earlier else usual
        if before is not None and before > last:
            at_seq = next(act.at_seq for act in history if act.units == last)
            yield Lowered(slot=slot, at_seq=at_seq, units=last, before_units=before)


def _last_charged(connection: Connection, dataset: int, people: list[Lowered]) -> dict[int, int]:
    """The sequence of the last entry that charged each of them since the first of their acts; 0 where none has."""
    last = np.zeros(max((each.slot for each in people), default=-1) + 1, dtype=np.int64)
    after = min((each.at_seq for each in people), default=0)
    if people:
        values = {"dataset": dataset, "after": after}
        entries = connection.execute(text(ENTRIES), values, execution_options={"yield_per": 16})
        for seq, form, slots, active in entries:
            charged = _charged(form, slots, active)
            last[charged[charged < last.size]] = seq
    return {each.slot: int(last[each.slot]) for each in people}


def _charged(form: int, slots: bytes, active: bytes | None) -> np.ndarray[Any, np.dtype[np.int64]]:
    listed = np.frombuffer(slots, dtype=">u4") if form == 0 else np.flatnonzero(_bits(slots))
    touched = listed.astype(np.int64)
    return touched if active is None else touched[_bits(active)[: touched.size].astype(np.bool_)]


def _bits(bitmap: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8))


def _adopt(connection: Connection, dataset: int, each: Lowered) -> None:
    """The limit before the pause, less what burns have not taken since because of it; and the act that says so."""
    burns = connection.execute(text(BURNS), {"dataset": dataset}).fetchall()
    spared = sum(units for seq, units in burns if seq > each.at_seq)
    limit = max(each.before_units - spared, each.units)
    connection.execute(
        text("UPDATE individuals SET paused = true, limit_units = :limit WHERE dataset_id = :dataset AND slot = :slot"),
        {"limit": limit, "dataset": dataset, "slot": each.slot},
    )
    _journal(connection, dataset, {"slot": each.slot, "limit_units": str(limit)})


def _journal(connection: Connection, dataset: int, detail: dict[str, Any]) -> None:
    number, at_seq, previous = connection.execute(
        text("SELECT data_version + 1, seq, journal_hash FROM heads WHERE dataset_id = :dataset FOR UPDATE"),
        {"dataset": dataset},
    ).fetchall()[0]
    facts = {"number": number, "at_seq": at_seq, "act": "pause", "detail": detail}
    digest = hashlib.sha256(b"sparing journal 1\0" + bytes(previous) + rfc8785.dumps(facts)).digest()
    connection.execute(
        text(
            "INSERT INTO journal (dataset_id, number, at_seq, act, detail, at, previous_hash, hash)"
            " VALUES (:dataset, :number, :at_seq, 'pause', CAST(:detail AS jsonb), now(), :previous, :hash)"
        ),
        {
            "dataset": dataset,
            "number": number,
            "at_seq": at_seq,
            "detail": json.dumps(detail),
            "previous": bytes(previous),
            "hash": digest,
        },
    )
    connection.execute(
        text("UPDATE heads SET data_version = :number, journal_hash = :hash WHERE dataset_id = :dataset"),
        {"number": number, "hash": digest, "dataset": dataset},
    )
