"""The order of an answer's coordinates: by group from the outermost in, then by item, then within the item."""

from collections.abc import Mapping, Sequence

PerItem = float | tuple[float, ...]
"""One number for all select items, or a number for each item."""


def by_item(numbers: PerItem) -> tuple[float, ...]:
    """The numbers as a tuple, which has a single number if it holds for all items."""
    return numbers if isinstance(numbers, tuple) else (numbers,)


def common(numbers: PerItem) -> float:
    """The number that holds for all items. Raises ValueError if each item has its own."""
    if isinstance(numbers, tuple):
        raise ValueError(f"the {len(numbers)} items have precisions of their own")  # noqa: TRY004 - the type is right
    return numbers


def by_coordinate(numbers: PerItem, axes: Sequence[Mapping[str, object]], dimension: int) -> tuple[float, ...]:
    """The number of each coordinate's item. Raises ValueError if the axes do not have as many items as numbers."""
    if not isinstance(numbers, tuple):
        return (numbers,) * dimension
    sizes = [size for _, size in items_of(axes)]
    block = [number for number, size in zip(numbers, sizes, strict=True) for _ in range(size)]
    return tuple(block) * (dimension // len(block))


def items_of(axes: Sequence[Mapping[str, object]]) -> list[tuple[str, int]]:
    """The title and the number of coordinates of each select item; several functionals together are one item."""
    items = axes[-1].get("select") if axes else None
    found: dict[object, tuple[str, int]] = {}
    for place, axis in enumerate(items if isinstance(items, list | tuple) else ()):
        item = axis.get("item", place)
        title, size = found.get(item, (str(axis["select"]), 0))
        found[item] = title, size + int(axis["size"])
    return list(found.values())
