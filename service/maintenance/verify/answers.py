"""Every stored answer made again from its entry and its query, by the function that made it.

An entry is made together with the answer to its analyst, so that exactly one fresh answer belongs to each entry. Reused
answers are made again too; the ledger cannot tell if one of them is missing.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

import orjson

from service.ledger.model.ledger_entry import LedgerEntry, answer_digest
from service.ledger.model.parameters import KeptParameters, hashes_in, with_numbers
from service.ledger.model.rows import AnswerRecord, DatasetRecord, RegistrationHistory
from service.maintenance.journal_state import JournalState
from service.maintenance.replay import Visitor
from service.query.canonical import request_hash
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.query.stated import shown_of
from service.writer.batch import document

_PLANS_KEPT: Final = 64
_HASHED: Final = b'"parameters":{'

KeptOf = Callable[[UUID, str], KeptParameters | None]
"""The function that looks up an analyst's stored parameters by their hash."""


class AnswersCheck(Visitor):
    """Checks the answers entry by entry, in the order of the sequences that the answers state."""

    def __init__(self, history: RegistrationHistory, answers: Iterator[AnswerRecord], kept: KeptOf) -> None:
        self.findings: list[str] = []
        self.count = 0
        self._history, self._answers, self._kept = history, answers, kept
        self._next = next(answers, None)
        self._plan_of = lru_cache(maxsize=_PLANS_KEPT)(self._compiled)

    def entry(self, entry: LedgerEntry, then: JournalState) -> None:  # noqa: ARG002 - answers do not go by acts
        """Check the answers made from an entry, and that one of them is the fresh answer to the entry's analyst."""
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
        """Report the remaining answers: the ledger has no entry for them."""
        self._orphans(before=None)

    def _orphans(self, *, before: int | None) -> None:
        while self._next is not None and (before is None or self._next.seq < before):
            self.findings.append(f"{place_of(self._next)}: shows ledger row {self._next.seq}, which does not exist")
            self._advance()

    def _advance(self) -> None:
        self.count += 1
        self._next = next(self._answers, None)

    def _check(self, answer: AnswerRecord, entry: LedgerEntry) -> bool:
        """Check one answer, and tell whether it says that it is fresh."""
        said = _read(answer.body)
        is_fresh = said.get("reused") is False
        plan = self._planned(answer, entry)
        if plan is None:
            wrong = [f"ledger row {entry.seq} has no query that can be planned"]
        else:
            wrong = list(self._wrong_with_body(answer, entry, plan, said))
            if answer.request_hash not in _request_hashes(answer, entry, plan, is_fresh=is_fresh):
                wrong.append(f"its request_hash is not of the query of ledger row {entry.seq}")
            wrong += _wrong_with_form(answer, entry, plan, is_fresh=is_fresh)
        self.findings += self._wrong_with_parameters(answer, entry)
        if answer.query_id != entry.query_id:
            wrong.append(f"its query_id is not that of ledger row {entry.seq}")
        if is_fresh and answer.principal_id != entry.analyst_id:
            wrong.append(f"is said to be fresh, but ledger row {entry.seq} was asked by {entry.analyst_id}")
        if is_fresh and entry.answer_digest != answer_digest(entry.salt, answer.principal_id, answer.key):
            wrong.append(f"is said to be fresh, but ledger row {entry.seq} was asked under another key")
        if is_fresh and answer.at != entry.asked_at:
            wrong.append(f"is said to be fresh, but ledger row {entry.seq} was asked at another time")
        self.findings += [f"{place_of(answer)}: {each}" for each in wrong]
        return is_fresh

    def _wrong_with_parameters(self, answer: AnswerRecord, entry: LedgerEntry) -> Iterator[str]:
        """Findings if the numbers that an entry names by their hash are not kept for the analyst of an answer."""
        for digest in _digests_in(entry.canonical):
            kept, place = self._kept(answer.principal_id, digest), f"parameters row {digest} of {answer.principal_id}"
            if kept is None:
                yield f"{place}: is missing, and ledger row {entry.seq} names it"
            elif not kept.are_themselves:
                yield f"{place}: its numbers do not give its hash"

    def _wrong_with_body(
        self, answer: AnswerRecord, entry: LedgerEntry, plan: Plan, said: dict[str, Any]
    ) -> Iterator[str]:
        given = document(shown_of(plan), entry, self._history.now, reused=said.get("reused") is True)
        if answer.body == given:
            return
        other = [name for name, value in _read(given).items() if said.get(name) != value]
        if said and other:
            yield f"its body says other {', '.join(other)} than ledger row {entry.seq}"
        else:
            yield f"its body is not the one that ledger row {entry.seq} gives"

    def _planned(self, answer: AnswerRecord, entry: LedgerEntry) -> Plan | None:
        version = self._history.at(entry.seq).version
        return self._plan_of(answer.asked_form or entry.canonical, entry.analyst_id, entry.dimension, version)

    def _compiled(self, canonical: bytes, analyst_id: UUID, dimension: int, version: int) -> Plan | None:
        record = next(each for each in self._history.versions() if each.version == version)
        try:
            plan = plan_of(canonical, record, analyst_id=analyst_id, dimension=dimension, kept=self._kept)
        except QueryProblem:
            return None
        # Many plans are held, and the numbers of models may be megabytes.
        return plan.lightened()


def plan_of(canonical: bytes, record: DatasetRecord, *, analyst_id: UUID, dimension: int, kept: KeptOf) -> Plan:
    """The plan of an entry's query under the registration of its time.

    Raises QueryProblem if this version cannot read the query, or reads another number of groups out of it.
    """
    query = with_numbers(parse_query(canonical), partial(kept, analyst_id))
    plan = compile_query(
        query,
        record.schema,
        capacity=record.capacity,
        budget_units=record.budget_units,
        pricing=record.accounting,
        monitor=record.monitor,
    )
    if plan.dimension != dimension:
        raise QueryProblem.of("group_by", f"makes {plan.dimension} coordinates, and made {dimension} when it was asked")
    return plan


def _request_hashes(answer: AnswerRecord, entry: LedgerEntry, plan: Plan, *, is_fresh: bool) -> list[bytes]:
    """The hashes of the requests to which an answer made from an entry may belong.

    A reused answer was asked for with `reuse`. A query whose number changes with every charge cannot be asked with it.
    """
    values = [*([True] if plan.reuse else []), *([False] if is_fresh else [])]
    return [request_hash(answer.asked_form or entry.canonical, reuse=reuse) for reuse in values]


def _wrong_with_form(answer: AnswerRecord, entry: LedgerEntry, plan: Plan, *, is_fresh: bool) -> Iterator[str]:
    """Findings if the form in which an answer was asked for is not another form of its entry's query."""
    if plan.query_hash != entry.query_hash:
        yield f"its query is not that of ledger row {entry.seq}"
    elif answer.asked_form is not None and (is_fresh or answer.asked_form == entry.canonical):
        yield f"its asked_form is another than that of ledger row {entry.seq}"


def _digests_in(canonical: bytes) -> tuple[str, ...]:
    """The hashes that stand in place of parameters in an entry's query."""
    if _HASHED not in canonical:  # for most it need not be read again
        return ()
    try:
        return hashes_in(parse_query(canonical))
    except QueryProblem:
        return ()


def place_of(answer: AnswerRecord) -> str:
    """The name of an answer's row in findings."""
    return f"answers row {answer.key!r} of {answer.principal_id}"


def _read(body: bytes) -> dict[str, Any]:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}
