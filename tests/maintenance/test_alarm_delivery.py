"""Alarms are tried again after longer and longer pauses, and one that fails holds up no other."""

import logging
from itertools import pairwise
from uuid import UUID

import pytest

from service.ledger.ports.alarms import AlarmNotice, NotDelivered
from service.maintenance.alarm_delivery import PAUSE_S_MAX, TRIES_MAX, AlarmDelivery
from tests.factories import CLOCK
from tests.logged import lines_of, records_of
from tests.waiting import until


def notice(dataset: str) -> AlarmNotice:
    """An alarm of a dataset."""
    return AlarmNotice(id=UUID(int=len(dataset)), dataset=dataset, sequence=3, share=0.5, rang_at=CLOCK)


class Receiver:
    """Fails so many times for each dataset, and notes every try with its time."""

    def __init__(self, failures: dict[str, int], error: Exception | None = None) -> None:
        self.failures, self.error = failures, error or NotDelivered("the receiver answered with status 500")
        self.tries: list[tuple[str, float]] = []
        self.now_s = 0.0

    def clock_s(self) -> float:
        """The time that a test sets."""
        return self.now_s

    def deliver(self, notice: AlarmNotice) -> None:
        """Fail or take it."""
        self.tries.append((notice.dataset, self.now_s))
        if self.failures.get(notice.dataset, 0) > 0:
            self.failures[notice.dataset] -= 1
            raise self.error


def run(receiver: Receiver, *names: str, until_s: float) -> list[tuple[str, float]]:
    """The tries until a time, each second a look."""
    delivery = AlarmDelivery(receiver, clock_s=receiver.clock_s)
    for name in names:
        delivery.put(notice(name))
        delivery.step()
    while receiver.now_s < until_s:
        pause_s = delivery._pause_s()
        if pause_s is None:
            break
        receiver.now_s += pause_s
        delivery.step()
    return receiver.tries


def test_pauses_double_and_the_first_try_comes_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """Until it is taken; a log line for each failure."""
    with caplog.at_level(logging.WARNING, logger="sparing.alarm"):
        tries = run(Receiver({"survey": 3}), "survey", until_s=100)
    assert tries == [("survey", 0.0), ("survey", 1.0), ("survey", 3.0), ("survey", 7.0)]
    said = "the budget alarm of dataset survey was not delivered yet: the receiver answered with status 500"
    assert lines_of(caplog, "sparing.alarm") == [said] * 3


def test_it_is_given_up_after_so_many_tries(caplog: pytest.LogCaptureFixture) -> None:
    """The pauses end at the longest; the last failure is an error in the log."""
    tries = run(Receiver({"survey": 99}), "survey", until_s=1e6)
    pauses = [after - before for (_, before), (_, after) in pairwise(tries)]
    assert pauses == [min(2.0**n, PAUSE_S_MAX) for n in range(TRIES_MAX - 1)]
    last = records_of(caplog, "sparing.alarm")[-1]
    assert (last.levelno, len(tries)) == (logging.ERROR, TRIES_MAX)
    assert last.getMessage().startswith("the budget alarm of dataset survey was not delivered in 12 tries")


def test_one_that_fails_holds_up_no_other() -> None:
    """The other is delivered between its tries."""
    tries = run(Receiver({"survey": 2}), "survey", "shop", until_s=100)
    assert tries == [("survey", 0.0), ("shop", 0.0), ("survey", 1.0), ("survey", 3.0)]


def test_an_error_of_the_receiver_is_an_incident_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """Its text is not logged."""
    assert len(run(Receiver({"survey": 1}, ValueError("https://secret")), "survey", until_s=100)) == 2
    assert "alarm of survey error=builtins.ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_the_thread_delivers_until_it_is_closed() -> None:
    """Closing drops what waits, and ends the thread though it waits for long."""
    receiver = Receiver({"survey": 9})
    delivery = AlarmDelivery(receiver, first_pause_s=3600)
    delivery.open()
    delivery.put(notice("survey"))
    until(lambda: len(receiver.tries) == 1)
    (thread,) = delivery._threads
    delivery.close()
    assert not thread.is_alive()
    assert len(receiver.tries) == 1
