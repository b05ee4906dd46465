"""Tests of opacity: sealed bytes must have nothing in common, and hold no number that is searched for."""

from collections.abc import Iterable, Sequence

SEALED_BYTES_MIN = 512
"""Shorter values are no sealed ones: a bucket of the rate limit, which is a time."""
_ENOUGH = 8


def fixed_places(values: Sequence[bytes]) -> list[int]:
    """The places at which values of one size all have the same byte; by chance none, when there are enough of them.

    A count in the clear has digits or high bytes that stay as they are, in every base.
    """
    assert len(values) >= _ENOUGH, "too few to judge by"
    return [place for place, column in enumerate(zip(*values, strict=True)) if len(set(column)) == 1]


def fixed_in(values: Iterable[bytes]) -> dict[int, list[int]]:
    """The places of `fixed_places` in values of many sizes, by size, where there are enough of one."""
    by_size: dict[int, list[bytes]] = {}
    for value in values:
        by_size.setdefault(len(value), []).append(value)
    enough = {size: group for size, group in by_size.items() if size >= SEALED_BYTES_MIN and len(group) >= _ENOUGH}
    assert enough, "too few to judge by"
    return {size: places for size, group in enough.items() if (places := fixed_places(group))}


def written(numbers: Iterable[int]) -> list[bytes]:
    """How numbers may be written where eight bytes or more are used; shorter ones would turn up by chance."""
    ways: list[bytes] = []
    for number in numbers:
        ways += [b"%020d" % number, number.to_bytes(8, "big"), number.to_bytes(8, "little")]
        ways += [text for text in (b"%d" % number, b"%x" % number) if len(text) >= 6]
    return ways
