"""The bodies of requests: their length where it is known, all their bytes, and a file that is closed."""

import io
from pathlib import Path

import pytest

from sparing._bodies import Sent, chunks, opened

ROWS = b"a\n" * 70_000


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """A file with the rows."""
    found = tmp_path / "rows.csv"
    found.write_bytes(ROWS)
    return found


def test_the_length_is_known_of_bytes_and_files(where: Path) -> None:
    """And not of an iterator; reading begins at the start all the same."""
    file = where.open("rb")
    bodies = [opened(content) for content in (ROWS, lambda: ROWS, lambda: io.BytesIO(ROWS), lambda: file)]
    bodies.append(opened(lambda: iter([ROWS[:9], ROWS[9:]])))
    assert [body.length for body in bodies] == [*[len(ROWS)] * 4, None]
    assert [b"".join(chunks(body.content)) for body in bodies] == [ROWS] * 5
    assert file.closed


def test_a_body_that_was_not_read_is_closed(where: Path) -> None:
    """A refused connection leaves such a body; bytes need no closing."""
    file = where.open("rb")
    for body in (opened(lambda: file), opened(ROWS)):
        body.close()
    assert file.closed


def test_the_bytes_sent_are_counted() -> None:
    """An empty chunk tells of the beginning; without `progress` nothing is told."""
    told: list[tuple[int, int | None]] = []
    for progress in (lambda *now: told.append(now), None):
        sent = Sent(progress, 5)
        for chunk in (b"", b"abc", b"de"):
            sent.add(chunk)
        assert sent.sent == 5
    assert told == [(0, 5), (3, 5), (5, 5)]
