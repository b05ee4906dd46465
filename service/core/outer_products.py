"""Vectors that are outer products: of a row of features with itself, or with the error of a model's prediction.

The gradient of a linear model is left ⊗ right for each individual, and the sum over the active individuals is one
product of matrices, so that no individual's gradient is ever formed. Entries are whole numbers in doubles. The product
of as many rows as keep rows * |left| * |right| below 2^53 is exact in any order of its additions. So the vectors that
are summed are those whose norms were measured.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from service.core.renyi_filter import Touched

_EXACT_MAX: Final = 2**53
WITHIN: Final = 1 - 2.0**-40  # far more than the roundings of a factor and of its product with an entry add to a norm


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OuterProducts:
    """The individuals of a block, at p places, whose vectors are `left` ⊗ `right`, row-major, or half of a square.

    `left` (a, p) and `right` (b, p) are whole numbers, and |left| * |right| is at most `peak`. Norms are zero where not
    touched. Where `right` is None, a vector is the upper triangle of the square `left` ⊗ `left`. Raises ValueError for
    shapes that disagree and for a peak outside [1, 2^53).
    """

    touched: Touched
    norms_squared: NDArray[np.int64]  # (p,) squared grid steps, as `squared_norms` gives them
    left: NDArray[np.float64]
    right: NDArray[np.float64] | None
    peak: int
    one_norm: bool = False

    def __post_init__(self) -> None:
        """Refuse matrices of other shapes. What needs a pass over the entries is checked by tests alone."""
        right = self.left if self.right is None else self.right
        if not (self.norms_squared.shape == self.left.shape[1:] == right.shape[1:] == (self.touched.size,)):
            raise ValueError("one norm for each place, and one column of each matrix")
        if not 1 <= self.peak < _EXACT_MAX:
            raise ValueError(f"products of two entries must be below 2^53, got {self.peak}")

    @property
    def dimension(self) -> int:
        """The number of coordinates of a vector."""
        rows = int(self.left.shape[0])
        return rows * (rows + 1) // 2 if self.right is None else rows * int(self.right.shape[0])

    def add_to(self, total: NDArray[np.int64], active: NDArray[np.bool_]) -> None:
        """Add the vectors of the places marked in `active` (p,) to `total` (dimension,), in place and exactly."""
        left, rows = self.left * active, (_EXACT_MAX - 1) // self.peak
        right = left if self.right is None else self.right
        for start in range(0, active.size, rows):
            product = (left[:, start : start + rows] @ right[:, start : start + rows].T).astype(np.int64).reshape(-1)
            total += product[_upper(left.shape[0])] if self.right is None else product

    def shortened(self, places: NDArray[np.int64], norms_squared_max: NDArray[np.int64]) -> Self:
        """The block with the vectors at `places` (k,), each beyond its bound (k,), scaled and truncated to within it.

        Feldman and Zrnic (2021), Algorithm 3. Products are scaled in `left` alone. Squares, of which `left` is both
        sides, are scaled by the root of the factor. At most sqrt(2 room a) ||right|| / sigma_steps of rho, and a part
        in 2^38, stay unused, because truncation takes up to sqrt(a) steps of `left`. The factor is reduced by more than
        its rounding error, and `Accounts.debit` checks the charge.
        """
        left, norms = self.left.copy(), self.norms_squared.copy()
        factors = np.sqrt(norms_squared_max / norms[places]) * WITHIN
        left[:, places] = np.trunc(left[:, places] * (np.sqrt(factors) if self.right is None else factors))
        norms[places] = squared_norms(left[:, places], None if self.right is None else self.right[:, places])
        return replace(self, left=left, norms_squared=norms)


def squared_norms(left: NDArray[np.float64], right: NDArray[np.float64] | None) -> NDArray[np.int64]:
    """The squared norms (p,) of vectors of whole numbers, which the plan's bounds keep at 2^61 or below.

    ||l ⊗ r||^2 = ||l||^2 ||r||^2. The squared norm of the upper triangle of h ⊗ h is (||h||^4 + Σ h_j^4) / 2.
    """
    squares = squares_of(left)
    if right is not None:
        return np.multiply(squares, squares_of(right))
    halved: NDArray[np.int64] = (squares * squares + squares_of(np.square(left))) >> 1
    return halved


def squares_of(matrix: NDArray[np.float64]) -> NDArray[np.int64]:
    """The squared norm (p,), below 2^53, of each column of whole numbers (n, p)."""
    squares: NDArray[np.float64] = np.einsum("ij,ij->j", matrix, matrix)
    return squares.astype(np.int64)


@lru_cache(maxsize=4)
def _upper(size: int) -> NDArray[np.intp]:
    """The places of the upper triangle of a square matrix, row-major."""
    return np.flatnonzero(np.triu(np.ones((size, size), dtype=np.bool_)))
