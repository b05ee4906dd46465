"""The answer to one query: the exact sum over the active individuals, plus noise, and the charge of each.

Feldman and Zrnic (2021), Algorithm 2, one round. Individuals come in blocks of sparse integer vectors with squared
norms, those of the very integers that are summed, so that the charge is for what is added (theory: the true charge);
everyone else has the zero vector, adds nothing and pays nothing. Accounts are debited block by block, while a block is
in cache; the caller commits charges and answer together before the answer leaves, or takes the charges back.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Touched, first, is_uniform, kept, narrowest, uniform
from service.core.charge import charge_units, worst_case_units
from service.core.noise import Entropy, rounded_gaussian
from service.core.renyi_filter import Accounts

__all__ = ["Contributions", "Participants", "Release", "answer", "exact_sum"]


_HALF_BITS = 32
_SUMMED_MAX = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """The individuals of a block that a query touches, at p places, and m vector entries, all int64.

    Arrays may be zero-stride views where all elements are equal. Entries of one individual at one coordinate add up;
    entries at places that are not touched are ignored. `one_norm` is a fact of the query: with it, every touched
    individual has the same norm, whatever the data; without it, norms that are equal are so by chance, and nothing
    about a release may take another form for it. Raises ValueError when lengths disagree, the dimension is not
    positive, or the norms under `one_norm` are no such view.
    """

    touched: Touched
    norms_squared: NDArray[np.int64]  # (p,) squared grid steps, positive where touched, and in range elsewhere too
    dimension: int
    owners: NDArray[np.int64] | None  # (m,) entry e is of place owners[e]; None: one entry each, in order
    coordinates: NDArray[np.int64]  # (m,) in [0, dimension) where touched
    values: NDArray[np.int64]  # (m,) grid steps
    one_norm: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together; what needs a pass over the entries is left to tests."""
        places = (self.touched.size,)
        owned = places if self.owners is None else self.owners.shape
        if self.norms_squared.shape != places or not (owned == self.coordinates.shape == self.values.shape):
            raise ValueError("one norm for each place, one coordinate and one value for each entry")
        if self.dimension < 1:
            raise ValueError(f"dimension must be positive, got {self.dimension}")
        if self.one_norm and not is_uniform(self.norms_squared):
            raise ValueError("norms that are one by the query must be a view of one number")

    def add_to(self, total: NDArray[np.int64], active: NDArray[np.bool_]) -> None:
        """Add the vectors of the places marked in `active` (p,) to `total` (dimension,), in place and exactly.

        int64 addition is associative, so no order of individuals or blocks changes a bit; that the final total fits is
        the plan's public overflow bound. A single coordinate needs no scatter.
        """
        entries = active if self.owners is None else active[self.owners]
        if self.dimension == 1 and is_uniform(self.values):
            total[0] += first(self.values) * np.count_nonzero(entries)
        elif self.dimension == 1:
            total[0] += np.dot(self.values, entries.astype(np.int64))
        else:
            np.add.at(total, kept(entries, self.coordinates), kept(entries, self.values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Participants:
    """One block of a release: the individuals touched, those of them who are active, and the norms that price them."""

    touched: Touched
    active: NDArray[np.bool_]  # (p,) False where not touched; no other is charged
    norms_squared: NDArray[np.integer[Any]]  # (p,) squared grid steps, as narrow as the largest norm needs
    count: int  # of the individuals touched


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """An answer and its price. Only `values` may leave; the rest is the ledger's."""

    values: NDArray[np.int64]  # (dimension,) exact sum + noise, grid steps
    blocks: tuple[Participants, ...]  # in increasing slots
    one_norm: bool  # whether the query gives every individual the same norm, whatever the data
    charged_count: int
    left_out_count: int
    charged_units: int


def answer(
    contributions: Iterable[Contributions],
    accounts: Accounts,
    *,
    dimension: int,
    sigma_steps: float,
    norm_squared_max: int,
    entropy: Entropy,
) -> Release:
    """Answer sum_i q(x_i) over the active set, plus round(N(0, sigma^2)) in each of the `dimension` coordinates.

    `sigma_steps` in grid steps, `entropy` as in `rounded_gaussian`, blocks of contributions in increasing slots, no
    squared norm above `norm_squared_max`. Every active individual is debited its charge, so that the transcript is
    B-zCDP and sqrt(2 B)-GDP for an individual with limit B (Corollary 4.7; Koskela et al. 2023, Theorem 12). Raises
    ValueError before reading any contribution when sigma or the dimension is out of range, and for blocks that do not
    fit the query or each other; blocks before such a one stay debited.
    """
    values = rounded_gaussian(dimension, sigma_steps, entropy)
    blocks, one_norm, touched, charged, units = [], True, 0, 0, 0
    narrow = narrowest(norm_squared_max)
    for block in _in_order(contributions, dimension):
        charges = _charges(block, sigma_steps, norm_squared_max)
        active = accounts.active(block.touched, charges)
        block.add_to(values, active)
        debited = accounts.debit(block.touched, active, charges)
        norms = block.norms_squared if block.one_norm else block.norms_squared.astype(narrow)
        count, active_count = block.touched.count, int(np.count_nonzero(active))
        blocks.append(Participants(touched=block.touched, active=active, norms_squared=norms, count=count))
        one_norm = one_norm and block.one_norm
        touched, charged = touched + count, charged + active_count
        units += first(charges) * active_count if block.one_norm else exact_sum(debited)
    return Release(
        values=values,
        blocks=tuple(blocks),
        one_norm=one_norm,
        charged_count=charged,
        left_out_count=touched - charged,
        charged_units=units,
    )


def exact_sum(units: NDArray[np.int64]) -> int:
    """The sum of non-negative `units` (n,) as a Python int: many near 2^62 do not fit 64 bits."""
    if int(units.max(initial=0)) * units.size < _SUMMED_MAX:
        return int(units.sum())
    return (int((units >> _HALF_BITS).sum()) << _HALF_BITS) + int((units & (2**_HALF_BITS - 1)).sum())


def _charges(block: Contributions, sigma_steps: float, norm_squared_max: int) -> NDArray[np.int64]:
    """The charge by place of the block (p,); a charge that is one by the query is worked out once."""
    if block.one_norm:
        return uniform(worst_case_units(first(block.norms_squared), sigma_steps), block.touched.size)
    return charge_units(block.norms_squared, sigma_steps, norm_squared_max=norm_squared_max)


def _in_order(contributions: Iterable[Contributions], dimension: int) -> Iterator[Contributions]:
    """The blocks, refused if an individual could be in two of them: each would be let through on the same balance."""
    end = 0
    for block in contributions:
        if block.dimension != dimension or (block.touched.size > 0 and block.touched.begin < end):
            raise ValueError("blocks must have the query's dimension and come in increasing slots")
        end = max(end, block.touched.end)
        yield block
