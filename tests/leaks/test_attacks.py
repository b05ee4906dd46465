"""The timing attack itself: its probes are queries of its data, its controls count, and it sees what is late."""

from itertools import count

import numpy as np
import pytest

from loadtests.attack_options import ALL_PROBES, ONLY_PROBES, PAIRS, POLL, QUICK_PROBES, parsed, probes_of, tries_of
from loadtests.attack_timing import Cell, Tries, judged, verdict
from loadtests.batches import BATCHES, KINDS
from loadtests.bench_prices import plan_of
from loadtests.leaky_service import LEAK_NS, slow_if_paused
from loadtests.neighbours import (
    CODES,
    CONTROLS,
    EQUAL,
    HIDDEN_WORK,
    NEIGHBOURS,
    PLANTED,
    PLANTED_WORK,
    SHORTENED,
    Person,
    codes,
    people,
    query,
    registration,
)
from loadtests.priced_queries import Priced
from loadtests.probes import Features, encoded
from loadtests.separating import Interval, Separation
from loadtests.worst_data import made, one_paused
from loadtests.writer_work import state_of
from service.query.division import PAGE_SLOTS
from service.query.parse import BODY_BYTES_MAX, parse_query
from service.query.plan import compile_query
from service.query.schema import Schema
from service.query.working_memory import SCAN_WORTH
from tests.memory.shards import only_shard

PEOPLE = 300_000


def cell(neighbours: str, *, low: float = 0.4, late_chance: float = 1.0) -> Cell:
    """A pair, attacked: with this lower end, and so surprising counts of late answers."""
    interval = Interval(value=max(low, 0.5), low=low, high=1.0)
    found = Separation(feature="answer last ms", kind="larger", auc=interval, guess=interval)
    return Cell(
        neighbours=neighbours,
        probe="count",
        tries=30,
        found=found,
        medians=(1.0, 1.0),
        late=(0, 0),
        late_chance=late_chance,
    )


SOUND = [cell(EQUAL.name), cell(PLANTED.name, low=0.9), cell(PLANTED_WORK.name, low=0.9)]


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        ([], 0),
        ([cell("paused")], 0),
        ([cell("paused", low=0.56)], 1),
        ([cell("paused", late_chance=1e-6)], 1),
        ([cell("paused", late_chance=0.004)], 0),  # of four pairs one in a hundred may be so
        ([cell(EQUAL.name, low=0.56)], 2),
        ([cell(PLANTED.name)], 2),
        ([cell(PLANTED_WORK.name)], 2),
    ],
)
def test_the_exit_status_follows_pairs_and_controls(cells: list[Cell], status: int) -> None:
    """A pair that is told apart or late more often is 1; a control that fails is 2."""
    assert verdict([*SOUND, *cells]) == status


def test_a_late_answer_is_seen_by_its_doublings() -> None:
    """Answers of one world leave at twice or four times their delay, whatever their phase."""
    source = np.random.default_rng(1)

    def attempt(*, is_late: bool) -> Features:
        factor = source.choice([2.0, 4.0]) if is_late else 1.0
        return {"answer last ms": 100.0 * factor + source.uniform(0, 30)}

    tries = Tries([lambda: attempt(is_late=False), lambda: attempt(is_late=True)], 24, lambda: 0)
    found = judged("paused", "batch", tries, parsed(["--slot-ms", "0", "--seed", "1"]), error=1e-4)
    assert found.is_open
    assert found.found.low > 0.6
    assert found.late == (0, 0)


def test_every_batch_is_of_queries_of_the_attacked_data() -> None:
    """Each kind compiles against the registration, and a body of them is within its limit."""
    schema = Schema.model_validate(registration("alpha", PEOPLE)["tables"])
    for name, question, queries in KINDS:
        document = query(question)
        compile_query(parse_query(encoded(document)), schema, capacity=PEOPLE, budget_units=2**40)
        entries = [{"idempotency_key": f"q{n}", "query": document} for n in range(queries)]
        assert len(encoded({"queries": entries})) <= BODY_BYTES_MAX, name
        assert 20 <= queries <= 256


def test_the_names_of_probes_are_unique_and_known() -> None:
    """Controls and the quick form name probes that there are."""
    names = [probe.name for probe in ALL_PROBES]
    assert len(names) == len(set(names))
    assert set(QUICK_PROBES) <= set(names)
    assert set(ONLY_PROBES) == {pair.name for pair in (*SHORTENED, HIDDEN_WORK, *CONTROLS)}
    assert all(set(probes) <= set(names) for probes in ONLY_PROBES.values())


def test_options_name_probes_by_kind() -> None:
    """`batches` is all of them; quick asks each control and each neighbour something."""
    batches = parsed(["--probes", "batches"])
    assert batches.probes == [probe.name for probe in BATCHES]
    assert probes_of(PLANTED, batches) == []
    assert {tries_of(probe, batches) for probe in probes_of(EQUAL, batches)} == {batches.batch_tries}
    quick = parsed(["--quick"])
    assert all(probes_of(pair, quick) for pair in PAIRS)
    assert quick.tries < parsed([]).tries


def test_several_workers_are_polled_alone() -> None:
    """Two datasets may belong to two workers, and a forwarded answer leaves later."""
    assert parsed(["--workers", "2"]).probes == [POLL]
    assert parsed(["--workers", "2", "--quick"]).probes == [POLL]
    with pytest.raises(SystemExit):
        parsed(["--workers", "2", "--probes", "batches"])


def test_one_person_more_is_one_beyond_the_switch() -> None:
    """The others with an even code are the most for which an index is read; the one's is odd, and in one pair even."""
    even = int((codes(PEOPLE - 1, np.random.default_rng(1)) % 2 == 0).sum())
    assert even * SCAN_WORTH == -(-PEOPLE // PAGE_SLOTS) * PAGE_SLOTS
    (listed,) = [pair for pair in NEIGHBOURS if pair.name == "listed"]
    persons = [world.person for world in listed.worlds]
    assert [person.code % 2 for person in persons if person is not None] == [1, 0]


def test_a_range_of_all_ages_is_of_consecutive_slots() -> None:
    """Each of the others has an age of at least 1; the one person has one too, or none."""
    ages = people(500, Person(age=None))["age"].to_pylist()
    assert ages.count(None) == 1
    assert min(age for age in ages if age is not None) >= 1
    assert set(people(500, Person())["code"].to_pylist()) <= set(range(CODES))


def test_the_planted_work_is_done_where_an_individual_has_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """And for no other: the contributions are those of the service. Each reading of the clock is LEAK_NS / 4 later."""
    readings = count(0, LEAK_NS // 4)
    monkeypatch.setattr("loadtests.leaky_service.time.thread_time_ns", lambda: next(readings))
    memory = made(1000)
    state, plan = state_of(memory), plan_of(Priced(constant="individual", data=""), memory.schema, 1000)
    slots = np.concatenate([block.touched.slots() for block in slow_if_paused(only_shard(state), plan)])
    assert slots.tolist() == list(range(1000))
    assert next(readings) == 0
    one_paused(memory, np.zeros(0, dtype=np.int64))
    slow_if_paused(only_shard(state), plan)
    assert next(readings) == LEAK_NS // 4 + LEAK_NS + LEAK_NS // 4
