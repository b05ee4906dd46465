"""The blocks of a query in other forms: lists, stretches with marks, and either cut into parts.

What stands at places of a stretch that are not marked means nothing, so the forms put there what no query would.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from service.arrays import first, is_uniform, uniform
from service.core.release import Contributions
from service.core.renyi_filter import Touched
from service.query.division import PAGE_SLOTS
from tests.core.contributions import as_list

Blocks = Iterable[Contributions]
Form = Callable[[Blocks], Iterator[Contributions]]
RUBBISH_COORDINATE, RUBBISH_VALUE = -(2**40), 2**50
"""The entries at places that are not marked: they would be seen in any sum, or be refused."""


def as_they_come(blocks: Blocks) -> Iterator[Contributions]:
    """The blocks as the engine gives them."""
    yield from blocks


def lists(blocks: Blocks) -> Iterator[Contributions]:
    """Each block as a list."""
    yield from map(as_list, blocks)


def stretches(blocks: Blocks) -> Iterator[Contributions]:
    """Each block as stretches with marks, one for each page, from the first slot there to the last."""
    for block in map(as_list, blocks):
        yield from _stretches(block)


def alternately(blocks: Blocks) -> Iterator[Contributions]:
    """A list and stretches in turn."""
    for number, block in enumerate(map(as_list, blocks)):
        yield from _stretches(block) if number % 2 else [block]


def whole_pages(blocks: Blocks) -> Iterator[Contributions]:
    """All blocks together as stretches of whole pages, beyond the last slot in use too."""
    for page in _by_page(map(as_list, blocks)):
        yield _stretch(page, _page(page.touched.begin))


def cut(blocks: Blocks, size: int) -> Iterator[Contributions]:
    """The blocks in parts of at most so many places."""
    for block in blocks:
        for start in range(0, max(block.touched.size, 1), size):
            yield _part(block, start, min(start + size, block.touched.size))


def _page(slot: int) -> slice:
    start = slot // PAGE_SLOTS * PAGE_SLOTS
    return slice(start, start + PAGE_SLOTS)


def _by_page(blocks: Blocks) -> Iterator[Contributions]:
    """Lists, of which each has the slots of one page and no other has."""
    waiting: list[Contributions] = []
    for part in (part for block in blocks for part in _cut_at_pages(block)):
        if waiting and (part.touched.size == 0 or _page(part.touched.begin) == _page(waiting[0].touched.begin)):
            waiting.append(part)
            continue
        if waiting:
            yield _joined(waiting)
        waiting = [part]
    if waiting:
        yield _joined(waiting)


def _cut_at_pages(block: Contributions) -> Iterator[Contributions]:
    slots = block.touched.slots()
    edges = np.flatnonzero(np.diff(slots // PAGE_SLOTS)) + 1
    places = [0, *edges.tolist(), slots.size]
    for start, end in pairwise(places):
        yield _part(block, start, end)


def _joined(parts: list[Contributions]) -> Contributions:
    """Lists as one."""
    offsets = np.cumsum([0, *(part.touched.size for part in parts[:-1])]).tolist()
    size = sum(part.touched.size for part in parts)
    full = next((part for part in parts if part.touched.size > 0), parts[0])
    owners = [_owners(part) + offset for part, offset in zip(parts, offsets, strict=True)]
    one_norm = full.one_norm
    return Contributions(
        touched=Touched(np.concatenate([part.touched.slots() for part in parts])),
        norms_squared=uniform(first(full.norms_squared), size)
        if one_norm
        else np.concatenate([part.norms_squared for part in parts]),
        dimension=full.dimension,
        owners=None if all(part.owners is None for part in parts) else np.concatenate(owners),
        coordinates=np.concatenate([part.coordinates for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        one_norm=one_norm,
    )


def _owners(block: Contributions) -> NDArray[np.int64]:
    return np.arange(block.values.size) if block.owners is None else block.owners


def _part(block: Contributions, start: int, end: int) -> Contributions:
    """The places from `start` up to `end`."""
    index, marks = block.touched.index, block.touched.marks
    entries: NDArray[np.bool_] | slice = slice(start, end)
    if block.owners is not None:
        entries = (block.owners >= start) & (block.owners < end)
    here = slice(index.start + start, index.start + end) if isinstance(index, slice) else index[start:end]
    return Contributions(
        touched=Touched(here, None if marks is None else marks[start:end]),
        norms_squared=block.norms_squared[start:end],
        dimension=block.dimension,
        owners=None if block.owners is None else block.owners[entries] - start,
        coordinates=block.coordinates[entries],
        values=block.values[entries],
        one_norm=block.one_norm,
    )


def _stretches(block: Contributions) -> Iterator[Contributions]:
    for part in _cut_at_pages(block):
        yield _stretch(part, slice(part.touched.begin, part.touched.end))


def _stretch(block: Contributions, stretch: slice) -> Contributions:
    """A list as a stretch, with rubbish wherever no individual is touched."""
    size, places = stretch.stop - stretch.start, block.touched.slots() - stretch.start
    marks = np.zeros(size, dtype=np.bool_)
    marks[places] = True
    others = np.flatnonzero(~marks)
    largest = int(block.norms_squared.max(initial=0))
    norms = np.where(np.arange(size) % 2 == 0, largest, 0)
    norms[places] = block.norms_squared
    owners = np.concatenate([places[_owners(block)], others])
    coordinates = np.concatenate([block.coordinates, np.full(others.size, RUBBISH_COORDINATE)])
    values = np.concatenate([block.values, np.full(others.size, RUBBISH_VALUE)])
    if block.owners is None:
        order = np.argsort(owners)
        owners, coordinates, values = owners[order], coordinates[order], values[order]
    is_one = block.owners is None and is_uniform(block.values) and block.values.size > 0
    return Contributions(
        touched=Touched(stretch, marks),
        norms_squared=uniform(first(block.norms_squared), size) if block.one_norm else norms,
        dimension=block.dimension,
        owners=None if block.owners is None else owners,
        coordinates=coordinates,
        values=uniform(first(block.values), size) if is_one else values,
        one_norm=block.one_norm,
    )
