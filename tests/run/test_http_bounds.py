"""The bounds of the HTTP server: how many connections a limit of files leaves, and which of them makes room."""

import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.ledger.ports.telemetry import NULL_TELEMETRY
from service.run.http_bounds import REPORT_S, ConnectionTable, HttpBounds, Rank
from service.settings.settings import Settings
from tests.logged import lines_of


@dataclass(eq=False, kw_only=True)
class Connection:
    """A connection of a table, and whether it was closed."""

    rank: Rank | None
    is_evicted: bool = False

    def evict(self) -> None:
        self.is_evicted = True


def strangers(*since_s: float) -> list[Connection]:
    """Idle connections of strangers."""
    return [Connection(rank=(False, False, instant_s)) for instant_s in since_s]


def closed_in_order(connections: list[Connection], count: int) -> list[Connection]:
    """The connections that make room one after the other."""
    (newcomer,) = strangers(-1.0)
    table, left, closed = ConnectionTable(NULL_TELEMETRY), {*connections, newcomer}, list[Connection]()
    for _ in range(count):
        assert table.make_room(newcomer, left)
        (one,) = (each for each in left if each.is_evicted)
        left.remove(one)
        closed.append(one)
    assert not table.make_room(newcomer, left)
    assert not newcomer.is_evicted
    return closed


@pytest.mark.parametrize(
    ("files_max", "connections_max", "backlog"),
    [(1024, 768, 128), (20_000, 10_000, 2048), (256, 128, 64), (64, 32, 64), (2**20, 10_000, 2048)],
)
def test_connections_leave_files_to_the_rest(files_max: int, connections_max: int, backlog: int) -> None:
    """A quarter of the limit, and at least 128 while the limit allows; a burst is half of that."""
    bounds = HttpBounds.of(Settings.of({}, home=Path("/nowhere")), files_max=files_max)
    assert (bounds.connections_max, bounds.backlog) == (connections_max, backlog)


@pytest.mark.parametrize(("stated", "expected"), [("100", 100), ("5000", 768)])
def test_a_stated_number_holds_as_far_as_files_allow(stated: str, expected: int) -> None:
    """More than the limit of files leaves is not to be had."""
    settings = Settings.of({"SPARING_HTTP_CONNECTIONS_MAX": stated}, home=Path("/nowhere"))
    assert HttpBounds.of(settings, files_max=1024).connections_max == expected


def test_strangers_make_room_first_and_known_principals_at_work_never() -> None:
    """The longest in its state first: idle strangers, strangers at work, idle known principals."""
    idle = strangers(3.0, 1.0, 2.0)
    at_work = [Connection(rank=(False, True, 0.0)), Connection(rank=(False, True, 0.5))]
    known = [Connection(rank=(True, False, 0.2)), Connection(rank=(True, False, 0.1))]
    kept = Connection(rank=None)
    order = [idle[1], idle[2], idle[0], *at_work, known[1], known[0]]
    assert closed_in_order([kept, *known, *idle, *at_work], len(order)) == order
    assert not kept.is_evicted


def test_a_connection_that_has_become_known_is_spared() -> None:
    """The order is made for many at once, and looked at again for each."""
    connections = strangers(*map(float, range(64)))
    table, left = ConnectionTable(NULL_TELEMETRY), set(connections)
    assert table.make_room(connections[-1], left)
    left.remove(connections[0])
    connections[1].rank = None
    assert table.make_room(connections[-1], left)
    assert [each.is_evicted for each in connections[:4]] == [True, False, True, False]


def test_refusals_are_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The first at once, the rest as numbers; a quiet minute has no line."""
    table = ConnectionTable(NULL_TELEMETRY)
    with caplog.at_level(logging.WARNING, "sparing.http"):
        table.report(0.0)
        table.count_refusal("malformed-request")
        table.report(0.1)
        for _ in range(1000):
            table.count_refusal("malformed-request")
        table.count("silent")
        table.report(1.0)
        table.report(REPORT_S + 1)
        table.report(2 * REPORT_S + 2)
    assert lines_of(caplog, "sparing.http") == [
        "requests refused and connections closed: malformed-request: 1",
        "requests refused and connections closed: malformed-request: 1000, silent-connection: 1",
    ]
