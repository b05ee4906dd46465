"""Was there one order? What clients saw and what the ledger holds, checked against each other; pure.

The ledger claims an order: its sequence. The history is right when that order is dense, agrees with real time (what
began after another's answer was seen comes after it), gives every answer that anybody saw a byte of, and when replaying
it from the start with the filter's rule gives exactly the charges it holds and every reading that anybody took.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One delivery of a request: which query under which key, and what was seen of the answer, when."""

    key: str
    question: str
    started: float
    seen_at: float | None = None
    status: int | None = None
    body: bytes = b""
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Every individual's spent units by slot, as a client read them between two instants."""

    started: float
    ended: float
    spent: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of the ledger: charges in units, left-out individuals, and the key that made it.

    Of a tick of the monitor it has its number from 1, its released value, and what it adds for each slot, in steps.
    """

    seq: int
    made_by: str
    charged: Mapping[int, int]
    left_out: frozenset[int]
    tick: int = 0
    value: float = 0.0
    added: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A stored reply: which entry a key shows; of a tick its number and its value."""

    key: str
    seq: int
    body: bytes
    tick: int = 0
    value: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The values of all ticks so far, as a client read them from an instant on."""

    started: float
    values: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """The terms of a monitor: the question that asks for a tick, and who is counted.

    An individual with less than `threshold` units left at a tick is counted from it on: `coefficients[n]` steps n ticks
    later.
    """

    question: str
    coefficients: Sequence[int]
    threshold: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All of one dataset: what was seen outside, and what is held inside.

    `limits` are units by slot; `costs` gives each query's charge in units by slot. It touches those of them that have
    the units of its threshold left. `shortened` has the queries under the clip rule: from the units that an individual
    has left, which are less than its cost, to those that it pays.
    """

    rule: str = "skip"
    limits: Mapping[int, int]
    costs: Mapping[str, Mapping[int, int]]
    attempts: Sequence[Attempt]
    entries: Sequence[Entry]
    replies: Sequence[Reply]
    readings: Sequence[Reading] = field(default_factory=tuple)
    thresholds: Mapping[str, int] = field(default_factory=dict)
    shortened: Mapping[str, Callable[[int], int]] = field(default_factory=dict)
    ticks: Ticks | None = None
    curves: Sequence[Curve] = field(default_factory=tuple)


def violations(history: History) -> list[str]:
    """Everything that speaks against one order; empty when there is one."""
    return [
        *_of_order(history),
        *_of_answers(history),
        *_of_charges(history),
        *_of_time(history),
        *_of_readings(history),
        *_of_ticks(history),
        *_of_curves(history),
    ]


def _of_order(history: History) -> Iterator[str]:
    """The sequence is dense; every entry has a request that made it, and no key made two."""
    asked = {attempt.key for attempt in history.attempts}
    made = [entry.made_by for entry in history.entries]
    if [entry.seq for entry in history.entries] != list(range(1, len(history.entries) + 1)):
        yield "the ledger's sequence has a gap or a repetition"
    yield from (f"{key} was executed {made.count(key)} times" for key in sorted(set(made)) if made.count(key) > 1)
    yield from (f"{key} is in the ledger and was never asked" for key in sorted(set(made) - asked))
    yield from (
        f"{key} has a reply and was never asked" for key in sorted({reply.key for reply in history.replies} - asked)
    )


def _of_answers(history: History) -> Iterator[str]:
    """A client that saw a byte of an answer saw the stored one."""
    stored = {reply.key: reply for reply in history.replies}
    if len(stored) != len(history.replies):
        yield "a key has two replies"
    for attempt in history.attempts:
        if attempt.status != OK:
            continue
        reply = stored.get(attempt.key)
        if reply is None:
            yield f"{attempt.key} was answered and has no stored reply"
        elif not reply.body.startswith(attempt.body) or (attempt.complete and reply.body != attempt.body):
            yield f"{attempt.key} was answered with other bytes than the stored ones"


def _of_charges(history: History) -> Iterator[str]:
    """Replaying the order: everybody a query touches pays in full if what is left allows it, else nothing.

    Under the clip rule, a property of a query, they pay for the part that fits. Under the drop rule, one of a dataset,
    nobody pays that was left out before.
    """
    questions = {attempt.key: attempt.question for attempt in history.attempts}
    spent, gone = dict.fromkeys(history.limits, 0), set[int]()
    for entry in history.entries:
        if entry.made_by not in questions:
            continue
        question = questions[entry.made_by]
        enough = history.thresholds.get(question, 0)
        left = {slot: limit - spent[slot] for slot, limit in history.limits.items()}
        costs = {slot: cost for slot, cost in history.costs[question].items() if left[slot] >= enough}
        part = history.shortened.get(question, _nothing)
        units = {slot: cost if cost <= left[slot] else part(left[slot]) for slot, cost in costs.items()}
        paying = {slot: paid for slot, paid in units.items() if paid > 0 and slot not in gone}
        if history.rule == "drop":
            gone |= costs.keys() - paying.keys()
        if dict(entry.charged) != paying or entry.left_out != costs.keys() - paying.keys():
            yield f"entry {entry.seq} ({entry.made_by}) does not charge whom the order says"
        for slot, charge in entry.charged.items():
            spent[slot] += charge
    yield from (f"slot {slot} has spent more than its limit" for slot in spent if spent[slot] > history.limits[slot])


def _nothing(_left: int) -> int:
    """The units of an individual that cannot pay in full, where no vector is shortened."""
    return 0


def _of_time(history: History) -> Iterator[str]:
    """An entry whose answer was seen before another's request began comes before it; a reply comes after its entry."""
    started, seen = _times(history.attempts)
    latest, by = float("-inf"), ""
    for entry in sorted(history.entries, key=lambda entry: entry.seq):
        if seen.get(entry.made_by, float("inf")) < latest:
            yield f"{entry.made_by} was answered before {by} began, and comes after it in the ledger"
        if started.get(entry.made_by, float("-inf")) > latest:
            latest, by = started[entry.made_by], entry.made_by
    makers = {entry.seq: entry.made_by for entry in history.entries}
    for reply in history.replies:
        if seen.get(reply.key, float("inf")) < started.get(makers.get(reply.seq, ""), float("-inf")):
            yield f"{reply.key} shows entry {reply.seq} before anybody asked for it"


def _times(attempts: Sequence[Attempt]) -> tuple[dict[str, float], dict[str, float]]:
    """By key: when it was first asked, and when a byte of its answer was first seen."""
    started: dict[str, float] = {}
    seen: dict[str, float] = {}
    for attempt in attempts:
        started[attempt.key] = min(started.get(attempt.key, float("inf")), attempt.started)
        if attempt.status == OK and attempt.seen_at is not None:
            seen[attempt.key] = min(seen.get(attempt.key, float("inf")), attempt.seen_at)
    return started, seen


def _of_readings(history: History) -> Iterator[str]:
    """Each reading is the state after some entry, as late as what was seen before it, as early as what came after.

    Readings are placed as early as possible in order of their beginning, which succeeds whenever any placing does.
    """
    started, seen = _times(history.attempts)
    states = _states(history)
    placed: list[tuple[float, int]] = []
    for reading in sorted(history.readings, key=lambda reading: reading.started):
        fitting = [seq for seq, state in enumerate(states) if state == reading.spent]
        before = [entry.seq for entry in history.entries if seen.get(entry.made_by, float("inf")) < reading.started]
        before += [seq for ended, seq in placed if ended < reading.started]
        after = [entry.seq for entry in history.entries if started.get(entry.made_by, 0.0) > reading.ended]
        low, high = max(before, default=0), min(after, default=len(states)) - 1
        possible = [seq for seq in fitting if low <= seq <= high]
        if not possible:
            yield f"a reading that began at {reading.started} fits nowhere between entries {low} and {high}"
        else:
            placed.append((reading.ended, possible[0]))


def _states(history: History) -> list[dict[int, int]]:
    """Every individual's spent units after each entry, from none on."""
    states = [dict.fromkeys(history.limits, 0)]
    for entry in history.entries:
        state = dict(states[-1])
        for slot, units in entry.charged.items():
            state[slot] = state.get(slot, 0) + units
        states.append(state)
    return states


def _of_ticks(history: History) -> Iterator[str]:
    """Ticks are numbered as they come, each is answered under one key, and each counts whom the order says.

    The first tick of a slot is the first one at which too little was left; from then on it adds one coefficient after
    the other.
    """
    if history.ticks is None:
        return
    terms, states, questions = history.ticks, _states(history), {each.key: each.question for each in history.attempts}
    first: dict[int, int] = {}
    numbers = 0
    for entry, spent in zip(history.entries, states, strict=False):
        if questions.get(entry.made_by) != terms.question:
            yield from [f"entry {entry.seq} ({entry.made_by}) is a tick and was not asked for"] * (entry.tick > 0)
            continue
        numbers += 1
        for slot in (slot for slot, limit in history.limits.items() if limit - spent[slot] < terms.threshold):
            first.setdefault(slot, numbers)
        if entry.tick != numbers:
            yield f"entry {entry.seq} ({entry.made_by}) is tick {entry.tick} and not {numbers}"
        elif entry.added != {slot: terms.coefficients[numbers - since] for slot, since in first.items()}:
            yield f"tick {entry.tick} does not count whom the order says"
    shown = [(reply.tick, reply.value, reply.seq) for reply in history.replies if reply.tick]
    if sorted(shown) != [(entry.tick, entry.value, entry.seq) for entry in history.entries if entry.tick]:
        yield "the replies to ticks are not one for each tick of the ledger"


def _of_curves(history: History) -> Iterator[str]:
    """Each reading of all ticks has the first ones of the ledger, and every one that was seen before it."""
    _, seen = _times(history.attempts)
    values = [entry.value for entry in history.entries if entry.tick]
    makers = [entry.made_by for entry in history.entries if entry.tick]
    for curve in history.curves:
        before = sum(seen.get(maker, float("inf")) < curve.started for maker in makers)
        if not before <= len(curve.values) or list(curve.values) != values[: len(curve.values)]:
            yield f"a reading of the ticks that began at {curve.started} is not of the ledger"
