"""A length is read in one way: digits alone, as many as a body may have bytes."""

import pytest

from service.api.body_length import SMALL_BODY_BYTES, declared_length, is_small, length_of


@pytest.mark.parametrize(
    ("value", "length"),
    [
        *((b"0", 0), (b"0012", 12), (b"9" * 18, 10**18 - 1), (b"9" * 19, None)),
        *((b"", None), (b"-1", None), (b"+1", None), (b" 1", None), (b"1_0", None), (b"\xb2", None), (b"0x1", None)),
    ],
)
def test_a_length_is_digits_alone(value: bytes, length: int | None) -> None:
    """Anything else is none."""
    assert length_of(value) == length
    assert declared_length([(b"host", b"1"), (b"content-length", value)]) == length


def test_a_small_body_is_one_that_says_so() -> None:
    """A body of unknown length is not taken for a small one."""
    assert [is_small([(b"content-length", b"%d" % (SMALL_BODY_BYTES + more))]) for more in (0, 1)] == [True, False]
    assert not is_small([(b"transfer-encoding", b"chunked")])
