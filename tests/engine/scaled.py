"""Vectors that a clip has scaled, beside the exact ones."""

from decimal import Decimal, localcontext


def check_scaled(
    found: dict[int, int], vector: dict[int, int], clip_squared: int, *, bits: int = 45, steps: int = 0
) -> None:
    """Within the clip; each coordinate is the exact one truncated toward zero, or a step less.

    It may be above the exact one by its 2^-bits and so many steps, which 32 bits of a large entry lose.
    """
    assert sum(value**2 for value in found.values()) <= clip_squared
    with localcontext(prec=60):
        factor = (Decimal(clip_squared) / sum(value**2 for value in vector.values())).sqrt()
        for coordinate, value in vector.items():
            exact, scaled = abs(value * factor), found.get(coordinate, 0)
            assert scaled * value >= 0
            assert exact - 2 < abs(scaled) <= exact * (1 + Decimal(2) ** -bits) + steps
