"""A batch: the waiting queries that share one transaction, from request to answer and ledger entry.

A request whose key is known gets its stored answer. A query that repeats a release reuses it. For any other query, the
individuals' charges, the active set and the noise give the answer, and charges and answer are appended together.
Nothing leaves before the caller's commit.

The answer is JSON bytes, made by `document`. These bytes are committed and sent, and a verification makes them again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ldexp
from typing import Final
from uuid import UUID

import numpy as np
import orjson

from service.arrays import Reals
from service.core.charge import CHARGE_UNITS_MAX, rho_of_units
from service.core.noise import Entropy
from service.failpoints import reach
from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import (
    AllowanceExceeded,
    DatasetArchived,
    InvalidRequest,
    KeyConflict,
    Unavailable,
    WorkflowError,
)
from service.ledger.model.ledger_entry import FORMAT, SALT_BYTES, LedgerEntry, PublicEntry, answer_digest
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.rows import Address, AnswerRecord, DatasetRecord
from service.ledger.ports.store import CommitRejected
from service.ledger.ports.transaction import Appending
from service.query.parameters_ast import HashedParameters, SentNumbers
from service.query.plan import Plan
from service.query.stated import Shown, answer_of, shown_of
from service.query.stated_noise import packed
from service.writer.shards.shard import ShardRelease, Turn
from service.writer.state import DatasetState
from service.writer.submission import QueryRequest


def document(shown: Shown, entry: PublicEntry, record: DatasetRecord, *, reused: bool) -> bytes:
    """The answer as JSON bytes; `record` gives the public limits that its promises refer to."""
    answer = answer_of(shown, entry, record, reused=reused)
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


_ID_BYTES: Final = 16

QueryOutcome = StoredAnswer | WorkflowError | CommitRejected
Begun = Turn | PublicEntry | WorkflowError | None


@dataclass(slots=True, kw_only=True)
class Batch:
    """Entries and answers that one transaction will append, query by query. Until then the head moves in memory only.

    `is_empty` is true while there is nothing to commit, because every query was answered before or refused.
    """

    transaction: Appending
    state: DatasetState
    entropy: Entropy
    turns: list[Turn] = field(default_factory=list)
    entries: list[LedgerEntry] = field(default_factory=list)
    answers: dict[Address, AnswerRecord] = field(default_factory=dict)
    fresh: list[AnswerRecord] = field(default_factory=list)
    worst_cases: dict[UUID, int] = field(default_factory=dict)
    parameters: list[KeptParameters] = field(default_factory=list)
    is_empty: bool = True

    def answer_all(self, requests: Sequence[QueryRequest]) -> list[QueryOutcome]:
        """Answer the queries in order, each by an answer or a refusal. The caller commits before any answer leaves.

        One call to the shards answers all queries that have to be charged. Each query sees the debits of the queries
        before it.
        """
        self.answers = dict(self.transaction.known.answers)
        reach("key-looked-up")
        addresses: set[Address] = set()
        begun = [self._begun(request, addresses) for request in requests]
        released: Iterator[ShardRelease] = iter(())
        if self.turns:
            reach("noise-drawn")
            released = iter(self.state.shards.answer(self.turns))
        outcomes = [self._outcome(request, each, released) for request, each in zip(requests, begun, strict=True)]
        self.turns.clear()  # and with them the numbers, which the entries have as bytes
        if self.fresh:
            self.transaction.append(self.entries, self.fresh, self.worst_cases, self.parameters)
            reach("rows-inserted")
            self.is_empty = False
        return outcomes

    def _begun(self, request: QueryRequest, addresses: set[Address]) -> Begun:
        """The turn of a query that has to be charged, the release that the query reuses, or its refusal.

        Returns None if the key is known already or is among `addresses`, those of the batch so far. Noise, id and salt
        are drawn from the same entropy, so that with frozen entropy whole exchanges repeat.
        """
        address, plan = request.address, request.plan
        if address in self.answers or address in addresses:
            return None
        begun: Begun = self._reused(plan) if plan.reuse else None
        if begun is None:
            try:
                self._refuse(request)
                tick = self._next_tick() if plan.scale.law.is_free else 0
            except WorkflowError as refusal:
                return refusal
            noise = plan.scale.law.draw(plan.dimension, self.entropy)
            drawn = self.entropy((_ID_BYTES + SALT_BYTES) // 8).tobytes()
            begun = Turn(
                plan=plan,
                seq=self.transaction.head.seq + len(self.turns) + 1,
                query_id=UUID(bytes=drawn[:_ID_BYTES], version=4),
                salt=drawn[_ID_BYTES:],
                slots=self.state.slots_used,
                noise=noise,
                tick=tick,
            )
            self.turns.append(begun)
        addresses.add(address)
        return begun

    def _refuse(self, request: QueryRequest) -> None:
        """Refuse a query on public grounds, or count its worst case.

        Raises DatasetArchived, Unavailable, AllowanceExceeded.

        The allowance has to cover the worst cases of the stored queries, of those of this batch so far, and of this
        one.
        """
        record, analyst, cost = self.state.record, request.analyst, request.plan.scale.worst_case_units
        if record.is_archived:
            raise DatasetArchived
        if record.version != request.version:  # the plan speaks of columns as they were when it was made
            raise Unavailable
        spent = self.worst_cases.get(analyst.id, 0)
        if analyst.allowance_units is not None:
            left = analyst.allowance_units - self.transaction.known.worst_cases.get(analyst.id, 0) - spent
            if cost > left:
                asked, rest = rho_of_units(cost), rho_of_units(left)
                raise AllowanceExceeded(f"The query may cost rho {asked:f}; rho {rest:f} of your allowance is left.")
        self.worst_cases[analyst.id] = min(spent + cost, CHARGE_UNITS_MAX)

    def _next_tick(self) -> int:
        """The number of the tick that is asked now. Raises InvalidRequest when the monitor has no more ticks.

        A reconciliation ends a monitor for good: a restored database does not know whom the lost ticks counted first,
        and would count these individuals a second time.
        """
        head, monitor = self.transaction.head, self.state.record.monitor
        tick = self.state.ticks + sum(turn.tick > 0 for turn in self.turns) + 1
        if head.is_reconciled:
            ended = "the monitor has ended: ticks may have been lost when a backup of the database was put back"
            raise InvalidRequest.of("select[0].exhausted", ended)
        if monitor is None or tick > monitor.ticks:
            raise InvalidRequest.of("select[0].exhausted", f"the monitor's {self.state.ticks} ticks are used up")
        return tick

    def _outcome(self, request: QueryRequest, begun: Begun, released: Iterator[ShardRelease]) -> QueryOutcome:
        """The answer under a request's key, made from the shards' release or from an earlier one."""
        if isinstance(begun, WorkflowError):
            return begun
        if begun is not None:
            place = begun.seq - self.transaction.head.seq - 1
            is_fresh = isinstance(begun, Turn) and place == len(self.entries)
            if isinstance(begun, Turn) and is_fresh:
                self.entries.append(self._entry(request, begun, next(released)))
                self.state.released(self.entries[place])
            entry = self.entries[place] if isinstance(begun, Turn) else begun
            asked = request.plan.canonical
            fresh = self.answers[request.address] = AnswerRecord(
                principal_id=request.analyst.id,
                key=request.key,
                request_hash=request.request_hash,
                seq=entry.seq,
                query_id=entry.query_id,
                body=document(shown_of(request.plan), entry, self.state.record, reused=not is_fresh),
                at=request.accepted_at.replace(microsecond=0),
                asked_form=None if asked == entry.canonical else asked,
            )
            self.fresh.append(fresh)
            for given in request.plan.parameters:
                self._keep(request.analyst.id, given)
        known = self.answers[request.address]
        return stored_answer(known) if known.request_hash == request.request_hash else KeyConflict()

    def _keep(self, analyst_id: UUID, given: HashedParameters) -> None:
        """Keep parameters that the analyst has sent with an answered query, also one whose answer is reused."""
        if isinstance(sent := given.source, SentNumbers):
            self.parameters.append(
                KeptParameters(principal_id=analyst_id, sha256=given.sha256, shape=sent.shape, numbers=sent.numbers)
            )

    def _reused(self, plan: Plan) -> Turn | PublicEntry | None:
        """A release of the same canonical query and noise in this public epoch: returning it again is post-processing.

        A release that an earlier version of the service made may have other noise or bins under the same text. Then it
        is not reused.
        """
        turn = next((turn for turn in reversed(self.turns) if turn.plan.query_hash == plan.query_hash), None)
        entry = self.transaction.known.reusable.get(plan.query_hash) if turn is None else None
        if entry is None:
            return turn
        is_met = plan.is_met_by(
            size=entry.size, grid_log2=entry.grid_log2, dimension=entry.dimension, sigmas=entry.item_sigmas
        )
        return entry if is_met else None

    def _entry(self, request: QueryRequest, turn: Turn, released: ShardRelease) -> LedgerEntry:
        plan, head = request.plan, self.transaction.head
        last_hash = self.entries[-1].hash if self.entries else head.hash
        worst_total = self.entries[-1].worst_case_total_units if self.entries else head.worst_case_units
        return LedgerEntry(
            format=FORMAT,
            seq=turn.seq,
            query_id=turn.query_id,
            analyst_id=request.analyst.id,
            analyst=request.analyst.name,
            epoch=head.epoch,
            canonical=plan.canonical,
            query_hash=plan.query_hash,
            mechanism=(plan.scale.law.numbered(turn.tick) if turn.tick else plan.scale.law).name,
            sigma=ldexp(plan.scale.law.size_steps, plan.scale.grid_log2),
            grid_log2=plan.scale.grid_log2,
            sigmas=packed(plan.scale.sigmas) if plan.scale.sigmas else b"",
            dimension=plan.dimension,
            worst_case_units=plan.scale.worst_case_units,
            worst_case_total_units=min(worst_total + plan.scale.worst_case_units, CHARGE_UNITS_MAX),
            salt=turn.salt,
            pieces=released.pieces,
            answer_digest=answer_digest(turn.salt, request.analyst.id, request.key),
            acts=head.data_version,
            acts_hash=head.journal_hash,
            charged_count=released.charged_count,
            left_out_count=released.left_out_count,
            charged_units=released.charged_units,
            values=released.values.astype(">i8").tobytes(),
            asked_at=request.accepted_at.replace(microsecond=0),
            previous_hash=last_hash,
            hash=b"",
        ).sealed()


def stored_answer(record: AnswerRecord) -> StoredAnswer:
    """The answer to send: the committed bytes, and their numbers on demand."""
    values = partial(_values, record.body)
    return StoredAnswer(query_id=record.query_id, sequence=record.seq, body=record.body, values=values)


def _values(body: bytes) -> Reals:
    return np.asarray(orjson.loads(body)["values"], dtype=np.float64)
