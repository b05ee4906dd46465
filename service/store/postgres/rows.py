"""Ledger entries and replies as rows: which columns, in which order, and back."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any, Final

from service.workflows.ledger import EncodedCharges, LedgerEntry
from service.workflows.records import AnswerRecord

ENTRY_COLUMNS: Final = (
    "seq, query_id, analyst_id, analyst, epoch, canonical, query_hash, sigma, grid_log2, dimension, worst_case_units, "
    "worst_case_total_units, charge_form, slots, active, charge_units, charges, charged_count, left_out_count, "
    'charged_units, "values", asked_at, previous_hash, hash, kind'
)
ENTRY_COUNT: Final = ENTRY_COLUMNS.count(",") + 1
ANSWER_COLUMNS: Final = "principal_id, idempotency_key, request_hash, seq, query_id, body, at"
ANSWER_COUNT: Final = ANSWER_COLUMNS.count(",") + 1


def entry_row(entry: LedgerEntry) -> tuple[object, ...]:
    """The values of ENTRY_COLUMNS."""
    charges = entry.charges
    return (
        entry.seq,
        entry.query_id,
        entry.analyst_id,
        entry.analyst,
        entry.epoch,
        entry.canonical,
        entry.query_hash,
        entry.sigma,
        entry.grid_log2,
        entry.dimension,
        entry.worst_case_units,
        entry.worst_case_total_units,
        charges.form,
        charges.slots,
        charges.active,
        charges.charge_units,
        charges.charges,
        entry.charged_count,
        entry.left_out_count,
        entry.charged_units,
        entry.values,
        entry.asked_at,
        entry.previous_hash,
        entry.hash,
        entry.kind,
    )


def entry_of(row: Sequence[Any]) -> LedgerEntry:
    """An entry from the values of ENTRY_COLUMNS."""
    return LedgerEntry(
        seq=row[0],
        query_id=row[1],
        analyst_id=row[2],
        analyst=row[3],
        epoch=row[4],
        canonical=bytes(row[5]),
        query_hash=row[6],
        sigma=row[7],
        grid_log2=row[8],
        dimension=row[9],
        worst_case_units=row[10],
        worst_case_total_units=row[11],
        charges=EncodedCharges(
            form=row[12],
            slots=bytes(row[13]),
            active=None if row[14] is None else bytes(row[14]),
            charge_units=row[15],
            charges=None if row[16] is None else bytes(row[16]),
        ),
        charged_count=row[17],
        left_out_count=row[18],
        charged_units=int(row[19]),
        values=bytes(row[20]),
        asked_at=row[21].astimezone(UTC),
        previous_hash=bytes(row[22]),
        hash=bytes(row[23]),
        kind=row[24],
    )


def answer_row(answer: AnswerRecord) -> tuple[object, ...]:
    """The values of ANSWER_COLUMNS."""
    return (answer.principal_id, answer.key, answer.request_hash, answer.seq, answer.query_id, answer.body, answer.at)


def answer_of(row: Sequence[Any]) -> AnswerRecord:
    """A reply from the values of ANSWER_COLUMNS."""
    return AnswerRecord(
        principal_id=row[0],
        key=row[1],
        request_hash=bytes(row[2]),
        seq=row[3],
        query_id=row[4],
        body=bytes(row[5]),
        at=row[6].astimezone(UTC),
    )
