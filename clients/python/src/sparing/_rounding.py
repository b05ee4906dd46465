"""Numbers for people, with as many digits as their half width leaves; the exact ones stay in the values."""

import math
from collections.abc import Sequence
from typing import Final

DECIMALS_MAX: Final = 12
_WHOLE_MAX: Final = 1e15
_SYMMETRIC: Final = 0.05


def decimals_of(half_width: float) -> int:
    """The decimals that show two digits of a half width; whole numbers of a half width of ten or more have none."""
    if half_width <= 0 or not math.isfinite(half_width):
        return 0
    return min(max(0, 1 - math.floor(math.log10(half_width))), DECIMALS_MAX)


def rounded(number: float, half_width: float, *, mark: str = "") -> str:
    """A number to the digits of its half width; `mark` stands between thousands. Exact where the half width is 0."""
    if half_width <= 0 or not abs(number) < _WHOLE_MAX:
        return f"{number:{mark}.12g}"
    decimals = decimals_of(half_width)
    return f"{round(number, decimals) + 0.0:{mark}.{decimals}f}"  # + 0.0: no -0


def with_error(value: float, below: float, above: float, *, mark: str = "") -> tuple[str, str]:
    """A number and its error: `139` and `16`, or where the distances differ its interval, `26.7` and `(25.1, 28.0)`.

    If the distances differ by less than a twentieth it is the longer one.
    """
    width = max(below, above)
    number, error, low, high = (
        rounded(each, width, mark=mark) for each in (value, width, value - below, value + above)
    )
    is_symmetric = below == above or abs(above - below) < _SYMMETRIC * width
    return number, error if is_symmetric else f"({low}, {high})"


def with_half_widths(values: Sequence[float], half_widths: Sequence[float], *, rest: str = "") -> str:
    """`139, 27 ± 16`; where each number has its own, `139 ± 16, 551120 ± 5200`. `rest` stands after the last number."""
    if len(set(half_widths)) == 1:
        (width, *_) = half_widths
        numbers = ", ".join(rounded(value, width) for value in values)
        return f"{numbers}{rest} ± {rounded(width, width)}"
    pairs = zip(values, half_widths, strict=True)
    return ", ".join(f"{rounded(value, width)} ± {rounded(width, width)}" for value, width in pairs) + rest
