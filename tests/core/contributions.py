"""The promises of a block of contributions, recomputed in Python's integers."""

from collections.abc import Iterable

import numpy as np

from service.arrays import Integers, first, uniform
from service.core.outer_products import OuterProducts
from service.core.release import Block, Contributions
from service.core.renyi_filter import Touched


def row(*numbers: int) -> Integers:
    """The numbers as int64."""
    return np.array(numbers, dtype=np.int64)


def of_numbers(slots: Iterable[int], numbers: Iterable[int]) -> Contributions:
    """One number of each of some slots."""
    touched, values = row(*slots), row(*numbers)
    return Contributions(
        touched=Touched(touched),
        norms_squared=values**2,
        dimension=1,
        owners=None,
        coordinates=np.zeros_like(touched),
        values=values,
    )


def of_one_number(slots: Iterable[int], number: int = 1) -> Contributions:
    """One number for each of some slots, in the form in which nothing is materialised."""
    touched = row(*slots)
    return Contributions(
        touched=Touched(touched),
        norms_squared=uniform(number**2, touched.size),
        dimension=1,
        owners=None,
        coordinates=uniform(0, touched.size),
        values=uniform(number, touched.size),
        one_norm=True,
    )


def refuse_unsound(block: Contributions) -> None:
    """Recompute every squared norm from the entries. Raises ValueError naming the first promise that is broken."""
    size, entries = block.touched.size, block.values.size
    owners = list(range(entries)) if block.owners is None else block.owners.tolist()
    marks = [True] * size if block.touched.marks is None else block.touched.marks.tolist()
    vectors: list[dict[int, int]] = [{} for _ in range(size)]
    if not all(0 <= owner < size for owner in owners):
        raise ValueError("owners are out of range")
    for owner, coordinate, value in zip(owners, block.coordinates.tolist(), block.values.tolist(), strict=True):
        if not marks[owner]:
            continue
        if not 0 <= coordinate < block.dimension:
            raise ValueError("coordinates are out of range")
        vectors[owner][coordinate] = vectors[owner].get(coordinate, 0) + value
    norms = [sum(value**2 for value in vector.values()) for vector in vectors]
    told = block.norms_squared.tolist()
    if any(mark and (norm != stated or norm == 0) for norm, stated, mark in zip(norms, told, marks, strict=True)):
        raise ValueError("norms_squared are not the positive squared norms of the entries")
    if min(told, default=0) < 0:
        raise ValueError("norms_squared are negative")


def as_entries(block: OuterProducts) -> Contributions:
    """The vectors of a block, entry by entry."""
    left, right = block.left.astype(np.int64), (block.left if block.right is None else block.right).astype(np.int64)
    matrices = left.T[:, :, np.newaxis] * right.T[:, np.newaxis, :]
    vectors = matrices.reshape(block.touched.size, -1)
    if block.right is None:
        vectors = matrices[:, *np.triu_indices(left.shape[0])]
    owners, coordinates = np.nonzero(vectors)
    return Contributions(
        touched=block.touched,
        norms_squared=block.norms_squared,
        dimension=block.dimension,
        owners=owners,
        coordinates=coordinates,
        values=vectors[owners, coordinates],
    )


def sparse(block: Block) -> Contributions:
    """The block, entry by entry."""
    return as_entries(block) if isinstance(block, OuterProducts) else block


def as_list(block: Block) -> Contributions:
    """The block as a list of its touched slots alone."""
    block = sparse(block)
    if block.touched.marks is None:
        return block
    places = np.flatnonzero(block.touched.marks)
    owners = np.arange(block.values.size) if block.owners is None else block.owners
    entries = block.touched.marks[owners]
    return Contributions(
        touched=Touched(block.touched.slots()),
        norms_squared=block.norms_squared[: places.size] if block.one_norm else block.norms_squared[places],
        dimension=block.dimension,
        owners=None if block.owners is None else np.searchsorted(places, owners[entries]),
        coordinates=block.coordinates[entries],
        values=block.values[entries],
        one_norm=block.one_norm,
    )


def as_stretch(block: Contributions, *, before: int = 0) -> Contributions:
    """The block over a stretch that begins up to so many slots earlier; untouched places hold other numbers."""
    block = as_list(block)
    slots = block.touched.slots()
    begin, end = max(block.touched.begin - before, 0), block.touched.end
    marks, norms = np.zeros(end - begin, dtype=np.bool_), np.ones(end - begin, dtype=np.int64)
    marks[slots - begin], norms[slots - begin] = True, block.norms_squared
    owners = np.arange(slots.size) if block.owners is None else block.owners
    return Contributions(
        touched=Touched(slice(begin, end), marks),
        norms_squared=uniform(first(block.norms_squared), end - begin) if block.one_norm else norms,
        dimension=block.dimension,
        owners=(slots - begin)[owners],
        coordinates=block.coordinates,
        values=block.values,
        one_norm=block.one_norm,
    )


def in_parts(block: Contributions, size: int) -> list[Contributions]:
    """The block as lists of so many individuals each, at least one."""
    block = as_list(block)
    owners = np.arange(block.values.size) if block.owners is None else block.owners
    parts = []
    for start in range(0, max(block.touched.size, 1), size):
        entries = (owners >= start) & (owners < start + size)
        parts.append(
            Contributions(
                touched=Touched(block.touched.slots()[start : start + size]),
                norms_squared=block.norms_squared[start : start + size],
                dimension=block.dimension,
                owners=owners[entries] - start,
                coordinates=block.coordinates[entries],
                values=block.values[entries],
                one_norm=block.one_norm,
            )
        )
    return parts
