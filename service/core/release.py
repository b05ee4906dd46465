"""The answer to one query: the exact sum over the active individuals, plus noise, and the charge of each.

Feldman and Zrnic (2021), Algorithm 2, one round. Individuals come in blocks of sparse integer vectors with squared
norms. The norms are those of the very integers that are summed, so that the charge is for what is added. Everyone else
has the zero vector, adds nothing and pays nothing. Accounts are debited block by block, while a block is in cache. The
caller commits charges and answer together before the answer leaves, or takes the charges back.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers, Mask, exact_sum, first, is_uniform, kept, narrowest, take, uniform
from service.core.laws import Law
from service.core.outer_products import OuterProducts
from service.core.renyi_filter import Accounts, Touched
from service.core.shortening import shortened


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """The individuals of a block that a query touches, at p places, and m vector entries, all int64.

    Arrays may be zero-stride views where all elements are equal. Entries of one individual at one coordinate add up.
    Entries at places that are not touched are ignored. `one_norm` says that by the query every touched individual has
    the same norm, whatever the data. Without `one_norm` equal norms are a fact of the data, and the form of a release
    must not depend on it. Raises ValueError when lengths disagree, when the dimension is not positive, or when the
    norms under `one_norm` are not a zero-stride view.
    """

    touched: Touched
    norms_squared: Integers  # (p,) squared grid steps, positive where touched, and in range elsewhere too
    dimension: int
    owners: Integers | None  # (m,) entry e is of place owners[e], not decreasing; None: one entry each
    coordinates: Integers  # (m,) in [0, dimension) where touched
    values: Integers  # (m,) grid steps
    one_norm: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together. What needs a pass over the entries is checked by tests alone."""
        places = (self.touched.size,)
        owned = places if self.owners is None else self.owners.shape
        if self.norms_squared.shape != places or not (owned == self.coordinates.shape == self.values.shape):
            raise ValueError("one norm for each place, one coordinate and one value for each entry")
        if self.dimension < 1:
            raise ValueError(f"dimension must be positive, got {self.dimension}")
        if self.one_norm and not is_uniform(self.norms_squared):
            raise ValueError("norms that are one by the query must be a view of one number")

    def add_to(self, total: Integers, active: Mask) -> None:
        """Add the vectors of the places marked in `active` (p,) to `total` (dimension,), in place and exactly.

        int64 addition is associative, so that the order of individuals and blocks changes no bit. The plan's public
        overflow bound ensures that the final total fits. A single coordinate needs no scatter.
        """
        entries = active if self.owners is None else active[self.owners]
        if self.dimension == 1 and is_uniform(self.values):
            total[0] += first(self.values) * np.count_nonzero(entries)
        elif self.dimension == 1:
            total[0] += np.dot(self.values, entries.astype(np.int64))
        else:
            np.add.at(total, kept(entries, self.coordinates), kept(entries, self.values))

    def shortened(self, places: Integers, norms_squared_max: Integers) -> Self:
        """The block with the vectors at `places` (k,), each beyond its bound (k,), scaled and truncated to within it.

        Feldman and Zrnic (2021), Algorithm 3. For m entries at most sqrt(2 room m) / sigma_steps of rho and a unit stay
        unused, because truncation takes sqrt(m) steps at most.
        """
        values, norms = self.values.copy(), self.norms_squared.copy()
        if self.owners is None:
            entries, firsts = places, np.arange(places.size)
        else:
            entries = np.flatnonzero(np.bincount(places, minlength=norms.size)[self.owners])
            firsts = np.searchsorted(self.owners[entries], places)
        values[entries], norms[places] = shortened(values[entries], firsts, norms_squared_max)
        return replace(self, values=values, norms_squared=norms, one_norm=False)


Block = Contributions | OuterProducts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Participants:
    """One block of a release: the individuals touched, those of them who are active, and the norms that price them."""

    touched: Touched
    active: Mask  # (p,) False where not touched; no other is charged
    norms_squared: NDArray[np.integer[Any]]  # (p,) squared grid steps, as narrow as the largest norm needs
    count: int  # of the individuals touched
    norms_before: NDArray[np.integer[Any]] | None = None  # (p,) under the clip rule the norms before it, as narrow
    one_norm: bool = False  # by the query


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """An answer and its price. Only `values` may leave the service; everything else is for the ledger."""

    values: Integers  # (dimension,) exact sum + noise, grid steps
    blocks: tuple[Participants, ...]  # in increasing slots
    one_norm: bool  # whether the query gives every individual the same norm, whatever the data
    charged_count: int
    left_out_count: int
    charged_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """The terms of a query, all public: the law of its noise, and a squared norm that no vector exceeds.

    Under the clip rule (`shortens`) a vector that costs more than its individual has left is shortened until it costs
    that much. Vectors of one number, for which there is Laplace noise, are not shortened.
    """

    dimension: int
    law: Law
    norm_squared_max: int
    shortens: bool = False


def answer(
    contributions: Iterable[Block],
    accounts: Accounts,
    terms: QueryTerms,
    *,
    noise: Integers,
    dropped: Callable[[Touched], NDArray[np.uint8]] | None = None,
) -> Release:
    """Answer sum_i q(x_i) over the active set, plus round(N(0, sigma^2)) in each coordinate.

    `noise` (dimension,) is drawn by the law of the terms, and the sum is added to that array. Where a dataset has
    several shards, each shard is given zeros instead. Blocks come in increasing slots. Under the drop rule `dropped`
    gives, by place, a positive number for an individual that was left out before. Every active individual is debited:
    with Gaussians the transcript is B-zCDP and sqrt(2 B)-GDP for a limit B (Corollary 4.7; Koskela et al. 2023, Theorem
    12). Raises ValueError for noise of another shape or type, and for a block that does not fit; the blocks before it
    stay debited.
    """
    if noise.shape != (terms.dimension,) or noise.dtype != np.int64:
        raise ValueError("one int64 of noise for each coordinate")
    parts = [
        _participate(block, accounts, terms, noise, None if dropped is None else dropped(block.touched))
        for block in _in_order(contributions, terms.dimension)
    ]
    blocks, charged = tuple(block for block, _, _ in parts), sum(count for _, count, _ in parts)
    return Release(
        values=noise,
        blocks=blocks,
        one_norm=all(block.one_norm for block in blocks),
        charged_count=charged,
        left_out_count=sum(block.count for block in blocks) - charged,
        charged_units=sum(units for _, _, units in parts),
    )


def _participate(
    block: Block, accounts: Accounts, terms: QueryTerms, values: Integers, dropped: NDArray[np.uint8] | None
) -> tuple[Participants, int, int]:
    """Charge the active of a block and add their vectors to `values`. Returns also their number and total units."""
    law, most, places = terms.law, terms.norm_squared_max, block.touched.size
    norms = block.norms_squared
    charges = uniform(law.charge(first(norms)), places) if block.one_norm else law.charges(norms, norm_squared_max=most)
    active = accounts.active(block.touched, charges, dropped)
    norms_before, narrow = None, narrowest(most)
    if terms.shortens:
        norms_before = norms.astype(narrow)
        may_take_part = accounts.active(block.touched, uniform(0, places), dropped)
        short = np.flatnonzero(np.greater(may_take_part, active))
        room = take(accounts.room[block.touched.index], short)
        block = block.shortened(short, law.norms_within(room, norm_squared_max=most))
        charges = np.array(charges)
        charges[short] = law.charges(take(block.norms_squared, short), norm_squared_max=most)
        active[short] = take(block.norms_squared, short) > 0
        norms = block.norms_squared * active
    block.add_to(values, active)
    debited = accounts.debit(block.touched, active, charges)
    charged, touched = int(np.count_nonzero(active)), block.touched
    units = first(charges) * charged if block.one_norm else exact_sum(debited)
    one, norms = block.one_norm, norms if block.one_norm else norms.astype(narrow)
    participants = Participants(
        touched=touched,
        active=active,
        norms_squared=norms,
        count=touched.count,
        norms_before=norms_before,
        one_norm=one,
    )
    return participants, charged, units


def _in_order(contributions: Iterable[Block], dimension: int) -> Iterator[Block]:
    """The blocks in order. Raises ValueError where one individual could be in two blocks, both on the same balance."""
    end = 0
    for block in contributions:
        if block.dimension != dimension or (block.touched.size > 0 and block.touched.begin < end):
            raise ValueError("blocks must have the query's dimension and come in increasing slots")
        end = max(end, block.touched.end)
        yield block
