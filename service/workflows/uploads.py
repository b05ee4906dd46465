"""Uploads of rows, all or nothing: checked outside the writer, then written in one transaction, once for each key.

Three kinds of rows are refused or dropped: an individual's rows beyond `rows_per_individual`, rows of individuals that
are not in the dataset, and repeated rows. Dropping keeps neighbouring datasets neighbours, for the guarantee compares
datasets that differ in all rows of one individual. Which rows of an individual are stored depends on the contents of
its own rows in the upload, on the dataset's salt and on the number of its own rows stored before. It depends neither on
the order of the rows nor on the rows of others. Without one individual's rows, every other individual has exactly the
same stored rows. A rule such as "the first rows of the file" would be as safe only if the order of the file never
depended on others. A rule such as "until the table is full" would let the rows of one individual decide about those of
another.

Of an individual with too many rows, those with the smallest keyed digests are kept: a random choice within each upload,
made once and for good. Sums and counts are too small where rows are dropped, and individuals with many rows lose the
most.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final, Self

import numpy as np
from pydantic import TypeAdapter

from service.arrays import Codes, Integers, Mask, Words
from service.engine.ingest import Keys, Problems, RowError, Rows, RowsProblem
from service.engine.key_digests import key_digests, row_digests
from service.engine.pages import union
from service.engine.people import SlotCodes, as_slice
from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import InvalidRequest, InvalidRows, KeyConflict, NotFound, OverLimit, PersonOverLimit
from service.ledger.model.journal import UploadOutcome, UploadRecord, UploadRequest, told_slots
from service.ledger.model.rows import Address, DatasetRecord
from service.ledger.model.views import FilePreview, UploadReport
from service.ledger.ports.row_reader import FirstRowsRequest, ReadRequest, RowReader
from service.ledger.ports.transaction import LongAct, Transaction
from service.query.canonical import canonical_json
from service.query.columns import DIGEST
from service.query.division import ShardPlace, rows_at_fullest
from service.query.problems import FieldError, quoted
from service.query.schema import EventsTable, IndividualsTable
from service.query.suggestions import did_you_mean
from service.reads.ledger import snapshot
from service.workflows.as_declared import refuse_unaccepted, upload_warnings
from service.workflows.datasets import refuse_changed
from service.workflows.key_twins import TWIN, twin_words, twins
from service.writer.committer import BaseVersion, Operation
from service.writer.operations import Preparation, Settled, act_beside
from service.writer.state import DatasetState
from service.writer.threads import WriterThread

PEOPLE_MAX: Final = 20
_UNKNOWN: Final = -1
_TOMBSTONES_AT_ONCE: Final = 2**14
_REPORT: Final = TypeAdapter(UploadReport)


def store_upload(
    record: DatasetRecord,
    writer: WriterThread,
    pepper: Pepper,
    request: UploadRequest,
    source: BinaryIO,
    reader: RowReader,
) -> UploadOutcome:
    """Read, check and store an upload, once for each key. Raises NotFound, InvalidRequest, KeyConflict, Unavailable.

    The record of a key is committed with its rows. Long acts on a dataset run one after the other, and each looks up
    its key after the one before has ended. A second request under a key therefore finds the record of the first,
    whether both came at the same time or the reply to the first COMMIT was lost.
    """
    if request.address is None or request.is_dry_run:
        rows = read_upload(record, request, source, reader)
        return UploadOutcome(report=act_beside(writer, placing(record, request, rows, pepper)))
    digest = _digest(record, request, source, pepper)
    with snapshot(writer.guard) as transaction:
        stored = _stored(transaction, request.address, digest)
    if stored is not None:
        return stored
    rows = read_upload(record, request, source, reader)
    return act_beside(writer, _once(request.address, digest, placing(record, request, rows, pepper)))


def _once(address: Address, digest: bytes, place: Preparation[UploadReport]) -> Preparation[UploadOutcome]:
    """The act `place`, which also stores the outcome under its key; settled if the key has an outcome by now."""

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[UploadOutcome] | Settled[UploadOutcome]:
        stored = _stored(transaction, address, digest)
        if stored is not None:
            return Settled(result=stored)
        placed = place(transaction, base)
        if isinstance(placed, Settled):
            return Settled(result=UploadOutcome(report=placed.result))

        def act(transaction: Transaction, state: DatasetState) -> UploadOutcome:
            report = placed(transaction, state)
            transaction.keep_upload(UploadRecord(address=address, digest=digest, report=_REPORT.dump_json(report)))
            return UploadOutcome(report=report)

        return act

    return prepare


def _stored(transaction: Transaction, address: Address, digest: bytes) -> UploadOutcome | None:
    """The outcome stored under the key, if there is one. Raises KeyConflict where it is of another upload."""
    found = transaction.upload_at(address)
    if found is None:
        return None
    if found.digest != digest:
        raise KeyConflict
    return UploadOutcome(report=_REPORT.validate_json(found.report), is_repeat=True)


def _digest(record: DatasetRecord, request: UploadRequest, source: BinaryIO, pepper: Pepper) -> bytes:
    """The keyed digest of the table, the options and the bytes; `source` is rewound."""
    content = hashlib.file_digest(source, "sha256")  # type: ignore[arg-type] # a BinaryIO reads into buffers too
    source.seek(0)
    said = {"bytes": content.hexdigest(), **request.options()}
    return pepper.upload_digest(record.id, canonical_json(said))


def read_upload(record: DatasetRecord, request: UploadRequest, source: BinaryIO, reader: RowReader) -> Rows:
    """Parse and check an upload. Raises NotFound, Unavailable, or InvalidRequest naming rows and columns."""
    table = record.schema.tables.get(request.table)
    if table is None:
        meant = did_you_mean(request.table, record.schema.tables) or "."
        raise NotFound(f"There is no table {quoted(request.table)} in this dataset{meant}")
    with _refusing():
        rows = reader.read(
            source,
            ReadRequest(
                content_type=request.content_type,
                table=table,
                budget_units=record.budget_units,
                keys=record.keys,
                form=request.form,
                duplicates=request.duplicates,
                bounds=request.bounds,
            ),
        )
        _check_floor(record, rows)
        if not request.is_dry_run:
            refuse_unaccepted(table, rows, request.accept)
    return rows


def first_rows(source: BinaryIO, request: FirstRowsRequest, reader: RowReader) -> FilePreview:
    """Read the beginning of a file. Raises InvalidRequest, Unavailable."""
    with _refusing():
        found = reader.read_first(source, request)
    return FilePreview(
        csv=found.csv,
        rows=found.rows,
        text_columns=found.text_columns,
        left_out=dict(found.left_out),
        is_whole=found.is_whole,
    )


def placing(record: DatasetRecord, request: UploadRequest, rows: Rows, pepper: Pepper) -> Preparation[UploadReport]:
    """The act that assigns slots to checked rows and appends them; for a dry run it only reports."""

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[UploadReport] | Settled[UploadReport]:
        refuse_changed(record, transaction)
        upload = _UploadOperation(record, request, rows, pepper, transaction, base)
        upload.write()
        report = upload.report()
        if request.is_dry_run:
            return Settled(result=report)
        change = base.records.changed(added=upload.added)
        base.records.make_room(upload.slots_used)
        joined = as_slice(upload.joined)
        detail = upload.detail()

        def act(transaction: Transaction, state: DatasetState) -> UploadReport:
            transaction.journal("rows", detail, slots=upload.slots_used)
            state.after_commit(
                lambda: state.put(change, slots_used=upload.slots_used, slots=joined, limits=upload.limits)
            )
            return report

        return act

    return prepare


class _UploadOperation:
    """One upload, while no other act can change the dataset's records."""

    def __init__(
        self,
        record: DatasetRecord,
        request: UploadRequest,
        rows: Rows,
        pepper: Pepper,
        transaction: LongAct,
        base: BaseVersion,
    ) -> None:
        self.record, self.request, self.rows, self.pepper = record, request, rows, pepper
        self.table_name, self.rows_unknown, self.dropped = request.table, 0, Dropped()
        self.transaction, self.records = transaction, base.records
        self.slots_used = transaction.head.slots
        self.slots = self.joined = self.limits = np.empty(0, dtype=np.int64)  # of every row; of new individuals
        self.added: dict[str, SlotCodes] = {}
        self.plain_forms: Mapping[int, str] = {}  # of the keys of new individuals
        self.twin_rows = np.empty(0, dtype=np.int64)  # from 1, the first one of each key that has a twin

    def write(self) -> None:
        """Write rows and individuals. Raises InvalidRequest."""
        table = self.record.schema.tables[self.table_name]
        if isinstance(table, IndividualsTable):
            self.slots = self._add_individuals()
            self._add(self.table_name, self.slots, self.rows.codes | self._digests(self.rows.keys))
        else:
            self.slots = self._add_events(table)
            self._add(self.table_name, self.slots, self.rows.codes)

    def report(self) -> UploadReport:
        """The effect of the upload; for a dry run, the effect that it would have."""
        return UploadReport(
            rows=len(self.rows.keys),
            individuals=self.joined.size,
            clipped=dict(self.rows.clipped),
            out_of_domain=dict(self.rows.out_of_domain),
            nulls=dict(self.rows.nulls),
            rows_dropped=self.dropped.rows,
            individuals_dropped_from=self.dropped.individuals,
            largest_share_dropped=self.dropped.largest_share,
            rows_unknown=self.rows_unknown,
            rows_repeated=self.rows.repeated,
            warnings=(
                *upload_warnings(self.record.schema.tables[self.table_name], self.rows),
                *twin_words(self.twin_rows),
            ),
            stored=not self.request.is_dry_run,
        )

    def detail(self) -> dict[str, object]:
        """The detail of the act in the journal."""
        counted = {"table": self.table_name, "rows": len(self.rows.keys), "individuals": self.joined.size}
        repeated = self.rows.repeated if self.request.duplicates == "drop" else 0
        named = {"rows_dropped": self.dropped.rows, "rows_unknown": self.rows_unknown, "rows_repeated": repeated}
        dropped = {name: count for name, count in named.items() if count}
        return counted | dropped | told_slots(joined=union([self.joined]), rows=union([self.slots]))

    def _add_individuals(self) -> Integers:
        """Add new individuals and return their slots.

        An individual erased before gets its old slot, and keeps its spent total.
        """
        known = self.transaction.slots_of(self.rows.keys)
        self._refuse_where(known != _UNKNOWN, "is registered already")
        self._note_twins(np.arange(known.size), self.rows.keys)
        return self._join(self.rows.keys, self.rows.limits)

    def _add_events(self, table: EventsTable) -> Integers:
        """The slots of the event rows to be stored.

        An unknown individual is created, or its rows are dropped or refused.
        """
        slots = self.transaction.slots_of(self.rows.keys)
        unknown = np.flatnonzero(slots == _UNKNOWN)
        new, whose = self.rows.keys.taken(unknown).distinct()
        self._note_twins(unknown[np.unique(whose, return_index=True)[1]], new)
        if table.unknown_individuals == "create" and self.request.unknown_individuals != "drop":
            # Until the rows are accepted, unknown individuals are counted in slots that are not taken yet.
            slots[unknown] = self.slots_used + whose
        else:
            slots = self._without_unknown(table, slots)
        slots = self._within_limit(table, slots)
        self._check_rows_capacity(table, slots)
        is_new = slots >= self.slots_used
        if is_new.any():
            whose = slots[is_new] - self.slots_used  # each has a row left, and so all of them join
            slots[is_new] = self._create(new)[whose]
        return slots

    def _without_unknown(self, table: EventsTable, slots: Integers) -> Integers:
        """The slots of the rows whose individuals are known; the other rows are dropped or refused.

        Whether a row stays depends on its own individual alone.
        """
        is_unknown = slots == _UNKNOWN
        if "drop" not in {self.request.unknown_individuals, table.unknown_individuals}:
            message = "no such individual; unknown_individuals=drop leaves such rows out"
            self._refuse_where(is_unknown, message, where_twin=f"no such individual; {TWIN}")
        self.rows_unknown = int(is_unknown.sum())
        if self.rows_unknown:
            self.rows, slots = self.rows.only(~is_unknown), slots[~is_unknown]
        return slots

    def _note_twins(self, firsts: Integers, keys: Keys) -> None:
        """Find twins among the keys (n,) of individuals not in the dataset.

        `firsts` (n,) is the first row of each key.
        """
        self.plain_forms = keys.plain_forms()
        rows = firsts[twins(self.transaction, keys, self.plain_forms)]
        self.twin_rows = 1 + (rows if self.rows.places is None else self.rows.places[rows])

    def _create(self, keys: Keys) -> Integers:
        """Add individuals that are known by their events alone, with NULL in all columns, and return their slots."""
        people = self.record.schema.individuals_name
        slots = self._join(keys, None)
        self._add(people, slots, self.records.null_codes(people, slots.size) | self._digests(keys))
        return slots

    def _digests(self, keys: Keys) -> dict[str, Codes]:
        return {DIGEST: key_digests(self.record.salt, keys)}

    def _add(self, table: str, slots: Integers, codes: Mapping[str, Codes]) -> None:
        if not self.request.is_dry_run:
            self.transaction.add_records(table, slots, codes)
        self.added[table] = slots, codes

    def _join(self, keys: Keys, limits: Integers | None) -> Integers:
        """Give slots, accounts and limits to new individuals in order of arrival, and return the slots."""
        slots = self._returning(keys)
        new = slots == _UNKNOWN
        slots[new] = self.slots_used + np.arange(int(new.sum()))
        self.slots_used += int(new.sum())
        if self.slots_used > self.record.capacity:
            raise InvalidRequest.of("rows", f"the dataset's capacity is {self.record.capacity} individuals")
        budget, reserve_units = np.full(len(keys), self.record.budget_units, dtype=np.int64), self.record.reserve_units
        limits = budget if limits is None else np.where(limits < 0, budget, limits)
        limits = np.maximum(limits - reserve_units, 0)
        # A restored database may have lost up to this much of a new individual's charges.
        limits[new] = np.maximum(limits[new] - self.transaction.head.joining_units, 0)
        # For individuals that left and came back: a limit never rises, and never falls below what is spent. While they
        # are gone neither number can change but by a burn, which raises the fence and makes this act begin again.
        limits_before, spent = self.records.limits_and_spent(slots[~new])
        limits[~new] = np.maximum(np.minimum(limits[~new], limits_before), spent)
        if not self.request.is_dry_run:
            self.transaction.add_individuals(slots, keys, limits, self.plain_forms)
        self.joined, self.limits = slots, limits
        return slots

    def _returning(self, keys: Keys) -> Integers:
        slots = np.full(len(keys), _UNKNOWN, dtype=np.int64)
        if self.transaction.has_tombstones():
            for start in range(0, len(keys), _TOMBSTONES_AT_ONCE):
                part = slice(start, start + _TOMBSTONES_AT_ONCE)
                slots[part] = self.transaction.slots_of_tombstones(self.pepper.tombstones(self.record.id, keys[part]))
        return slots

    def _check_rows_capacity(self, table: EventsTable, slots: Integers) -> None:
        """Raise InvalidRequest if the table, or its part at one shard, would hold too many rows.

        The public cost of every query rests on both bounds.
        """
        room, capacity = table.rows_max(self.record.capacity), self.record.capacity
        held = self.records.rows_held(self.table_name)
        if sum(held) + len(self.rows.keys) > room:
            message = f"the table has room for {room} rows and holds {sum(held)}; these are {len(self.rows.keys)} more"
            raise InvalidRequest.of("rows", message)
        at_shard = rows_at_fullest(table, capacity, len(held))
        for number, rows in enumerate(held):
            more = int(np.count_nonzero(ShardPlace(number, len(held)).holds(slots)))
            if more and rows + more > at_shard:
                message = (
                    f"the rows of the people at one of the {len(held)} shards would be {rows + more}, and a shard has"
                    f" room for {at_shard}: the dataset's rows are spread too unevenly for so many shards"
                )
                raise InvalidRequest.of("rows", message)

    def _within_limit(self, table: EventsTable, slots: Integers) -> Integers:
        """The slots of the rows within `rows_per_individual`; the other rows are dropped or refused.

        The overflow bounds of queries rest on this limit, which is public.
        """
        limit = table.rows_per_individual
        held = self.records.event_counts(self.table_name, slots)
        over = held > limit
        if not over.any():
            return slots
        if self.request.rows_over_limit == "refuse":
            message = f"more than rows_per_individual = {limit} rows for this individual"
            self._refuse_where(over, message, over_limit=people_over(self.rows.keys, slots, held, limit))
        beyond = np.flatnonzero(over)
        codes = {name: column[beyond] for name, column in self.rows.codes.items()}
        digests = row_digests(self.record.salt, table, self.rows.keys.taken(beyond), codes)
        kept = np.ones(slots.size, dtype=np.bool_)
        kept[beyond] = rows_to_keep(slots[beyond], digests, held[beyond], limit)
        self.dropped = Dropped.of(slots, held, kept, limit)
        self.rows = self.rows.only(kept)
        return slots[kept]

    def _refuse_where(
        self, wrong: Mask, message: str, *, where_twin: str | None = None, over_limit: OverLimit | None = None
    ) -> None:
        """Refuse the upload if any of its rows (n,) is wrong.

        `where_twin` is the message for the first row of a twin.
        """
        twin_rows = set(self.twin_rows.tolist() if where_twin else ())
        with _refusing(over_limit):
            _raise_where(
                _in_upload(wrong, self.rows.places),
                message,
                column=self.record.schema.tables[self.table_name].key,
                of_row=lambda place: (where_twin or message) if place + 1 in twin_rows else message,
            )


def _check_floor(record: DatasetRecord, rows: Rows) -> None:
    """Refuse an upload that states a limit below `limit_floor_rho`, which is a public promise."""
    if rows.limits is None:
        return
    below = (rows.limits >= 0) & (rows.limits < record.limit_floor_units)
    _raise_where(
        _in_upload(below, rows.places),
        "the limit is below the dataset's limit_floor_rho",
        column=record.schema.budget_column,
    )


def _in_upload(wrong: Mask, places: Integers | None) -> Mask:
    """The mask of the wrong rows among all rows of an upload, from the mask (n,) of those that were not left out."""
    if places is None or not wrong.any():
        return wrong
    of_all: Mask = np.zeros(int(places[-1]) + 1, dtype=np.bool_)
    of_all[places[wrong]] = True
    return of_all


def _raise_where(wrong: Mask, message: str, *, column: str | None, of_row: Callable[[int], str] | None = None) -> None:
    problems = Problems()
    problems.add_where(wrong, message, column=column, of_row=of_row)
    problems.raise_if_any()


@contextmanager
def _refusing(over_limit: OverLimit | None = None) -> Iterator[None]:
    """Raise a RowsProblem of the block as InvalidRows, or as InvalidRequest where the upload is wrong as a whole."""
    try:
        yield
    except RowsProblem as problem:
        errors = [FieldError(field=_place(error), message=error.message) for error in problem.errors]
        if problem.counts is None or problem.counts.rows_wrong == 0:
            raise InvalidRequest(*errors) from problem
        raise InvalidRows(errors, problem.counts, over_limit) from problem


def _place(error: RowError) -> str:
    row = "rows" if error.row is None else f"rows[{error.row}]"
    return row if error.column is None else f"{row}.{error.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """How many rows of an upload were dropped, of how many individuals, and the largest share that one of them lost."""

    rows: int = 0
    individuals: int = 0
    largest_share: float = 0.0

    @classmethod
    def of(cls, slots: Integers, held: Integers, kept: Mask, limit: int) -> Self:
        """Count the rows that are not `kept` (n,).

        With all rows stored, the individual of each would hold `held` (n,).
        """
        most = int(held.max(initial=limit))
        return cls(
            rows=int(np.count_nonzero(~kept)),
            individuals=np.unique(slots[~kept]).size,
            largest_share=(most - limit) / most,
        )


def rows_to_keep(slots: Integers, digests: Words, held: Integers, limit: int) -> Mask:
    """The mask of the rows (n,) that an upload stores if an individual may hold `limit`: those of the least digests.

    Each row is of an individual with too many rows, whose slot is in `slots` (n,). `held` (n,) is the number of rows
    that this individual would hold if all were stored.
    """
    order = np.lexsort([digests, slots])
    _, starts, sizes = np.unique(slots[order], return_index=True, return_counts=True)
    place = np.arange(order.size) - np.repeat(starts, sizes)
    stored_before = held[order] - np.repeat(sizes, sizes)
    kept: Mask = np.zeros(slots.size, dtype=np.bool_)
    kept[order[place < limit - stored_before]] = True
    return kept


def people_over(keys: Keys, slots: Integers, held: Integers, limit: int) -> OverLimit:
    """How many individuals have more than `limit` rows, and the keys of the first of them, in the order of the rows."""
    over = np.flatnonzero(held > limit)
    _, firsts = np.unique(slots[over], return_index=True)
    rows = over[np.sort(firsts)]
    people = tuple(
        PersonOverLimit(key=keys[row], rows=int(held[row]), excess=int(held[row]) - limit)
        for row in rows[:PEOPLE_MAX].tolist()
    )
    return OverLimit(individuals=rows.size, excess=int((held[rows] - limit).sum()), first=people)
