"""The answer to one query: the exact sum over the active individuals, plus noise, and the charge of each.

Feldman and Zrnic (2021), Algorithm 2, one round. Nothing is debited here: the caller commits the charges and the answer
together, and only then lets the answer go.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import first, is_uniform, kept, uniform
from service.core.charge import charge_units, worst_case_units
from service.core.contribution import Contributions
from service.core.noise import Entropy, rounded_gaussian
from service.core.renyi_filter import Accounts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """An answer and its price. Only `values` may leave; the rest is the ledger's."""

    values: NDArray[np.int64]  # (dimension,) exact sum + noise, grid steps
    touched: NDArray[np.int64]  # (k,) slots with a vector other than zero, strictly increasing
    active: NDArray[np.bool_]  # (k,) which of them can pay; no other is charged
    norms_squared: NDArray[np.int64]  # (k,) squared grid steps of all touched; a view of one under `one_norm`
    charged: NDArray[np.int64]  # (a,) the slots of the active, strictly increasing
    charges: NDArray[np.int64]  # (a,) units
    one_norm: bool  # whether the query gives every individual the same norm, whatever the data


def answer(
    contributions: Iterable[Contributions], accounts: Accounts, *, dimension: int, sigma_steps: float, entropy: Entropy
) -> Release:
    """Answer sum_i q(x_i) over the active set, plus round(N(0, sigma^2)) in each of the `dimension` coordinates.

    `sigma_steps` in grid steps, `entropy` as in `rounded_gaussian`, blocks of contributions in increasing slots. If the
    charges are debited before the next call, the transcript is B-zCDP and sqrt(2 B)-GDP for an individual with limit B
    (Corollary 4.7; Koskela et al. 2023, Theorem 12). Raises ValueError before reading any contribution when sigma or
    the dimension is out of range, and for blocks that do not fit the query or each other.
    """
    values = rounded_gaussian(dimension, sigma_steps, entropy)
    touched, masks, norms, charged, charges = [], [], [], [], []
    one_norm = True
    for block in _in_order(contributions, dimension):
        charge = _charges(block, sigma_steps)
        one_norm = one_norm and block.one_norm
        active = accounts.active(block.slots, charge)
        block.add_to(values, active)
        touched.append(block.slots)
        masks.append(active)
        norms.append(block.norms_squared)
        charged.append(kept(active, block.slots))
        charges.append(kept(active, charge))
    active = np.concatenate(masks) if masks else np.empty(0, dtype=np.bool_)
    all_norms = _joined(norms)
    return Release(
        values=values,
        touched=_joined(touched),
        active=active,
        norms_squared=all_norms,
        charged=_joined(charged),
        charges=_joined(charges),
        one_norm=one_norm and is_uniform(all_norms),
    )


def _charges(block: Contributions, sigma_steps: float) -> NDArray[np.int64]:
    """The charge of each individual of the block (k,); a charge that is one by the query is worked out once."""
    if block.one_norm:
        return uniform(worst_case_units(first(block.norms_squared), sigma_steps), block.slots.size)
    return charge_units(block.norms_squared, sigma_steps)


def _in_order(contributions: Iterable[Contributions], dimension: int) -> Iterator[Contributions]:
    """The blocks, refused if an individual could be in two of them: each would be let through on the same balance."""
    end = 0
    for block in contributions:
        if block.dimension != dimension or (block.slots.size > 0 and block.slots[0] < end):
            raise ValueError("blocks must have the query's dimension and come in increasing slots")
        end = int(block.slots[-1]) + 1 if block.slots.size > 0 else end
        yield block


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One array of all parts; parts that are all broadcasts of one number stay so, those that hold none of it too."""
    if len(parts) == 1:
        return parts[0]
    numbers = {first(part) for part in parts if part.size > 0}
    if parts and len(numbers) <= 1 and all(is_uniform(part) for part in parts):
        return uniform(max(numbers, default=0), sum(part.size for part in parts))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
