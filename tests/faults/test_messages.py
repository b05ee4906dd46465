"""COMMIT is found however it travels, and wherever the client's bytes were torn apart."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.messages import Commits, RoundTrips

STARTUP = (8).to_bytes(4, "big") + b"user"


def message(kind: bytes, words: bytes) -> bytes:
    """One message of the protocol."""
    return kind + (len(words) + 4).to_bytes(4, "big") + words


def executed(statement: bytes, name: bytes = b"") -> bytes:
    """One statement in a pipeline."""
    parse, bind = message(b"P", name + b"\0" + statement + b"\0\0\0"), message(b"B", b"\0" + name + b"\0\0\0\0\0\0\0")
    return parse + bind + message(b"D", b"P\0") + message(b"E", b"\0\0\0\0\0")


EXTENSION = b"WITH moved AS (UPDATE heads SET seq = $1) INSERT INTO answers SELECT $2"
SYNC = message(b"S", b"")
ANSWER = executed(b"BEGIN") + executed(EXTENSION, b"extend-7")
PIPELINED = executed(b"COMMIT") + SYNC
SIMPLE = message(b"Q", b"COMMIT\0")
READING = executed(b"SELECT seq FROM heads FOR UPDATE")


def parts(chunks: list[bytes]) -> list[tuple[bytes, bool]]:
    """The bytes that pass, joined where nothing is decided in between."""
    commits, found = Commits(), [(b"", False)]
    for chunk in chunks:
        for part, is_commit in commits.split(chunk):
            if is_commit or found[-1][1]:
                found.append((part, is_commit))
            else:
                found[-1] = (found[-1][0] + part, False)
    return [(part, is_commit) for part, is_commit in found if part]


@given(cuts=st.lists(st.integers(0, 400), max_size=12), pipelined=st.booleans())
def test_commit_of_an_answer_is_found_wherever_the_bytes_break(cuts: list[int], pipelined: bool) -> None:
    """It comes as one part; what was before it and what follows pass as they are."""
    commit = PIPELINED if pipelined else SIMPLE
    before = STARTUP + executed(b"BEGIN") + READING + SYNC + ANSWER
    after = executed(b"BEGIN") + READING + PIPELINED
    sent = before + commit + after
    edges = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    chunks = [sent[start:end] for start, end in pairwise(edges)]
    assert parts(chunks) == [(before, False), (commit, True), (after, False)]


def test_a_commit_that_makes_no_answer_last_passes() -> None:
    """A checkpoint, an act, or a transaction whose answer was undone."""
    sent = STARTUP + ANSWER + message(b"Q", b"ROLLBACK\0") + executed(b"BEGIN") + READING + PIPELINED + SIMPLE
    assert parts([sent]) == [(sent, False)]


def test_a_statement_that_was_prepared_before_is_known_by_its_name() -> None:
    """From its second use on only Bind names it."""
    bound = executed(b"BEGIN") + message(b"B", b"\0extend-7\0\0\0\0\0\0\0") + message(b"E", b"\0\0\0\0\0")
    first = STARTUP + ANSWER
    assert parts([first + PIPELINED + bound + PIPELINED]) == [
        (first, False),
        (PIPELINED, True),
        (bound, False),
        (PIPELINED, True),
    ]


def test_a_statement_that_commits_by_itself_is_set_apart_whole() -> None:
    """With its Parse while it has one, and by its name afterwards."""
    first = executed(EXTENSION) + SYNC
    prepared = executed(EXTENSION, b"_pg3_9") + SYNC
    bound = message(b"B", b"\0_pg3_9\0\0\0\0\0\0\0") + message(b"E", b"\0\0\0\0\0") + SYNC
    assert parts([STARTUP + first + prepared + bound + READING]) == [
        (STARTUP, False),
        (first, True),
        (prepared, True),
        (bound, True),
        (READING, False),
    ]


def test_to_be_prepared_is_not_to_be_committed() -> None:
    """A Parse with its Sync makes nothing last; what it has named does."""
    prepared = message(b"P", b"extend-1\0" + EXTENSION + b"\0\0\0") + SYNC
    bound = message(b"B", b"\0extend-1\0\0\0\0\0\0\0") + message(b"E", b"\0\0\0\0\0") + SYNC
    assert parts([STARTUP + prepared + bound]) == [(STARTUP + prepared, False), (bound, True)]


def test_a_round_trip_ends_when_the_client_has_its_reply() -> None:
    """A pipeline may have several, each but the last ended by a Flush."""
    flush = message(b"H", b"")
    password = message(b"p", b"secret\0")
    sent = STARTUP + password + executed(b"BEGIN") + READING + flush + ANSWER + PIPELINED + SIMPLE
    assert list(RoundTrips().split(sent)) == [
        (STARTUP, False),
        (password, False),
        (executed(b"BEGIN") + READING + flush, True),
        (ANSWER + PIPELINED, True),
        (SIMPLE, True),
    ]
