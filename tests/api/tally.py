"""A telemetry that counts requests."""

from collections import Counter

from service.ledger.ports.telemetry import Telemetry


class Tally(Telemetry):
    """Counts requests."""

    def __init__(self) -> None:
        self.in_flight, self.ended = 0, Counter[tuple[str, int]]()

    def request_began(self) -> None:
        self.in_flight += 1

    def request_ended(self, route: str, status: int) -> None:
        self.in_flight -= 1
        self.ended[route, status] += 1
