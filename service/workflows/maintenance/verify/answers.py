"""Every stored answer made again from its entry and its query, by the function that made it.

An entry is made together with the answer to its analyst, so that one fresh answer belongs to each. Reused
answers are made again too; the ledger cannot tell if one of them is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any, Final

import orjson

from service.query.canonical import request_hash
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.workflows.model.ledger_entry import LedgerEntry, answer_digest
from service.workflows.model.rows import AnswerRecord, DatasetRecord, RegistrationHistory
from service.workflows.writer.batch import Stated, document

_PLANS_KEPT: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """Facts from the query, or from the answer if this version cannot read the query."""

    labels: Sequence[Mapping[str, object]]
    axes: Sequence[Mapping[str, object]]
    l2_clip: float


class AnswersCheck:
    """Checks the answers, in the order of the sequences that they show, entry by entry."""

    def __init__(self, history: RegistrationHistory, answers: Iterator[AnswerRecord]) -> None:
        self.findings: list[str] = []
        self.count = self.uncompiled = 0
        self._history, self._answers = history, answers
        self._next = next(answers, None)
        self._plan_of = lru_cache(maxsize=_PLANS_KEPT)(self._compiled)

    def apply(self, entry: LedgerEntry) -> None:
        """Check the answers that show an entry, and that one of them is the answer to the entry's analyst."""
        self._orphans(before=entry.seq)
        fresh = 0
        while self._next is not None and self._next.seq == entry.seq:
            fresh += self._check(self._next, entry)
            self._advance()
        if entry.kind == "query" and fresh == 0:
            self.findings.append(f"ledger row {entry.seq}: the answer to it is missing from answers")
        elif fresh > 1:
            self.findings.append(f"ledger row {entry.seq}: {fresh} answers say that it was asked for them")

    def end(self) -> None:
        """Report the remaining answers, which show no entry."""
        self._orphans(before=None)

    def _orphans(self, *, before: int | None) -> None:
        while self._next is not None and (before is None or self._next.seq < before):
            self.findings.append(f"{place_of(self._next)}: shows ledger row {self._next.seq}, which does not exist")
            self._advance()

    def _advance(self) -> None:
        self.count += 1
        self._next = next(self._answers, None)

    def _check(self, answer: AnswerRecord, entry: LedgerEntry) -> bool:
        """Whether the answer says that it is fresh; adds findings."""
        said = _read(answer.body)
        is_fresh = said.get("reused") is False
        wrong = list(self._wrong_with_body(answer, entry, said))
        hashes = [request_hash(entry.canonical, reuse=reuse) for reuse in ((True, False) if is_fresh else (True,))]
        if answer.request_hash not in hashes:
            wrong.append(f"its request_hash is not of the query of ledger row {entry.seq}")
        if answer.query_id != entry.query_id:
            wrong.append(f"its query_id is not that of ledger row {entry.seq}")
        if is_fresh and answer.principal_id != entry.analyst_id:
            wrong.append(f"is said to be fresh, but ledger row {entry.seq} was asked by {entry.analyst_id}")
        if is_fresh and entry.answer_digest != _digest_of(answer, entry):
            wrong.append(f"is said to be fresh, but ledger row {entry.seq} was asked under another key")
        if is_fresh and answer.at != entry.asked_at:
            wrong.append(f"is said to be fresh, but ledger row {entry.seq} was asked at another time")
        self.findings += [f"{place_of(answer)}: {each}" for each in wrong]
        return is_fresh

    def _wrong_with_body(self, answer: AnswerRecord, entry: LedgerEntry, said: dict[str, Any]) -> Iterator[str]:
        given = self._body(entry, said) if entry.kind == "query" else b""
        if answer.body == given:
            return
        expected = _read(given)
        other = [name for name, value in expected.items() if said.get(name) != value]
        if said and other:
            yield f"its body says other {', '.join(other)} than ledger row {entry.seq}"
        else:
            yield f"its body is not the one that ledger row {entry.seq} gives"

    def _body(self, entry: LedgerEntry, said: dict[str, Any]) -> bytes:
        """The body that the answer must have."""
        shown: Stated | None = self._plan_of(entry.canonical, self._history.at(entry.seq).version)
        if shown is None:
            self.uncompiled += 1
            clip = inf if said.get("warnings") else 0.0
            shown = _Said(labels=said.get("labels", []), axes=said.get("axes", []), l2_clip=clip)
        return document(shown, entry, self._history.now, reused=said.get("reused") is True)

    def _compiled(self, canonical: bytes, version: int) -> Plan | None:
        record = next(each for each in self._history.versions() if each.version == version)
        try:
            return plan_of(canonical, record)
        except QueryProblem:  # an earlier version accepted it, this one does not
            return None


def plan_of(canonical: bytes, record: DatasetRecord) -> Plan:
    """The plan of an entry's query under the registration of its time. Raises QueryProblem."""
    query = parse_query(canonical)
    return compile_query(query, record.schema, capacity=record.capacity, budget_units=record.budget_units)


def place_of(answer: AnswerRecord) -> str:
    """The name of an answer's row in findings."""
    return f"answers row {answer.key!r} of {answer.principal_id}"


def _digest_of(answer: AnswerRecord, entry: LedgerEntry) -> bytes:
    return answer_digest(entry.salt, answer.principal_id, answer.key)


def _read(body: bytes) -> dict[str, Any]:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}
