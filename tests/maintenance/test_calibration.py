"""The constants of a machine, computed from measured work and measured commits."""

from dataclasses import asdict

from service.maintenance.calibration import COMMITS, MARGIN, PAYLOAD_BYTES, Commits, measured_commits, measured_speed
from service.store.entropy import system_entropy
from tests.rotation import one_of


def test_commits_are_measured_empty_and_with_a_payload() -> None:
    """Both equally often, in turn; and then empty ones, for the time of those that a disk delays."""
    sizes: list[int] = []
    found = measured_commits(lambda payload: sizes.append(len(payload)))
    assert set(sizes) == {0, PAYLOAD_BYTES}
    both, empty = sizes[:-COMMITS], sizes[-COMMITS:]
    assert both[::2] == [0] * (len(both) // 2)
    assert both[1::2] == [PAYLOAD_BYTES] * (len(both) // 2)
    assert empty == [0] * COMMITS
    assert 0 < found.empty_ns <= found.slow_ns


def test_every_constant_is_positive_and_those_of_commits_follow_the_commits() -> None:
    """The constants of commits carry the margin exactly, of slow ones and in a soak of quick ones."""
    for empty_ns in one_of([7_000_000, 1_000_000]):
        found = measured_speed(
            system_entropy, Commits(empty_ns=empty_ns, slow_ns=2 * empty_ns, payload_ns=empty_ns + 10 * PAYLOAD_BYTES)
        )
        assert all(value > 0 for value in asdict(found).values())
        assert found.commit == MARGIN * 2 * empty_ns
        assert found.committed_byte > MARGIN * 10  # and the digest
