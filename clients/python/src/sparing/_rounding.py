"""Numbers for people, rounded to the digits that half widths leave significant; the values stay exact."""

import math
from collections.abc import Sequence
from typing import Final

DECIMALS_MAX: Final = 12
_WHOLE_MAX: Final = 1e15
_SYMMETRIC: Final = 0.05


def decimals_of(half_width: float) -> int:
    """The number of decimals that shows two significant digits of a half width; 0 for half widths of ten or more."""
    if half_width <= 0 or not math.isfinite(half_width):
        return 0
    return min(max(0, 1 - math.floor(math.log10(half_width))), DECIMALS_MAX)


def rounded(number: float, half_width: float, *, mark: str = "") -> str:
    """A number rounded to the digits of its half width, or exact if that is 0; `mark` separates thousands."""
    if half_width <= 0 or not abs(number) < _WHOLE_MAX:
        return f"{number:{mark}.12g}"
    decimals = decimals_of(half_width)
    return f"{round(number, decimals) + 0.0:{mark}.{decimals}f}"  # + 0.0: no -0


def with_error(value: float, below: float, above: float, *, mark: str = "") -> tuple[str, str]:
    """A number and its error: `139` and `16`, or if the distances differ, its interval: `26.7` and `(25.1, 28.0)`.

    If the distances differ by less than a twentieth, the error is the longer distance.
    """
    width = max(below, above)
    number, error, low, high = (
        rounded(each, width, mark=mark) for each in (value, width, value - below, value + above)
    )
    is_symmetric = below == above or abs(above - below) < _SYMMETRIC * width
    return number, error if is_symmetric else f"({low}, {high})"


def with_half_widths(values: Sequence[float], half_widths: Sequence[float], *, rest: str = "") -> str:
    """The text `139, 27 ± 16`, or `139 ± 16, 551120 ± 5200` if errors differ; `rest` follows the last number."""
    if len(set(half_widths)) == 1:
        (width, *_) = half_widths
        numbers = ", ".join(rounded(value, width) for value in values)
        return f"{numbers}{rest} ± {rounded(width, width)}"
    pairs = zip(values, half_widths, strict=True)
    return ", ".join(f"{rounded(value, width)} ± {rounded(width, width)}" for value, width in pairs) + rest
