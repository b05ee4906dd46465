"""The answer to one query: the exact sum over those who can pay, plus noise, and what each of them pays.

Feldman and Zrnic (2021), Algorithm 2, one round. Nothing is debited here: the caller commits the charges and the answer
together, and only then lets the answer go.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.charge import charge_units
from service.core.contribution import Contributions
from service.core.few import marked
from service.core.noise import Entropy, rounded_gaussian
from service.core.renyi_filter import Accounts
from service.core.uniform import is_uniform, uniform


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """An answer and its price. Only `values` may leave; the rest is the ledger's."""

    values: NDArray[np.int64]  # (dimension,) exact sum + noise, grid steps
    touched: NDArray[np.int64]  # (k,) slots with a vector other than zero, strictly increasing
    active: NDArray[np.bool_]  # (k,) who of them can pay; nobody else is charged
    charged: NDArray[np.int64]  # (a,) the slots of those who can, strictly increasing
    charges: NDArray[np.int64]  # (a,) units; a read-only broadcast view where all are equal


def answer(
    contributions: Iterable[Contributions], accounts: Accounts, *, dimension: int, sigma_steps: float, entropy: Entropy
) -> Release:
    """Answer sum_i q(x_i) over those who can pay, plus round(N(0, sigma^2)) in each of the `dimension` coordinates.

    `sigma_steps` in grid steps, `entropy` as in `rounded_gaussian`, blocks of contributions in increasing slots. If the
    charges are debited before the next call, the transcript is B-zCDP and sqrt(2 B)-GDP for an individual with limit B
    (Corollary 4.7; Koskela et al. 2023, Theorem 12). Raises ValueError before looking at anybody when sigma or the
    dimension is out of range, and for blocks that do not fit the query or each other.
    """
    values = rounded_gaussian(dimension, sigma_steps, entropy)
    touched, masks, charged, charges = [], [], [], []
    for block in _in_order(contributions, dimension):
        charge = charge_units(block.norms_squared, sigma_steps)
        active = accounts.active(block.slots, charge)
        block.add_to(values, active)
        touched.append(block.slots)
        masks.append(active)
        charged.append(_where(active, block.slots))
        charges.append(_where(active, charge))
    active = np.concatenate(masks) if masks else np.empty(0, dtype=np.bool_)
    return Release(
        values=values, touched=_joined(touched), active=active, charged=_joined(charged), charges=_joined(charges)
    )


def _in_order(contributions: Iterable[Contributions], dimension: int) -> Iterator[Contributions]:
    """The blocks, refused if somebody could appear in two of them: each would be let through on the same balance."""
    end = 0
    for block in contributions:
        if block.dimension != dimension or (block.slots.size > 0 and block.slots[0] < end):
            raise ValueError("blocks must have the query's dimension and come in increasing slots")
        if block.slots.size > 0:
            end = int(block.slots[-1]) + 1
            yield block


def _where(mask: NDArray[np.bool_], elements: NDArray[np.int64]) -> NDArray[np.int64]:
    """elements[mask], as a view where it is all of them, none, or any of equal ones."""
    count = int(np.count_nonzero(mask))
    if count in {0, mask.size} or is_uniform(elements):
        return elements[:count]
    return marked(elements, mask)


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One array of all parts; parts that are all broadcasts of one number stay so."""
    full = [part for part in parts if part.size > 0]
    if len(full) == 1:
        return full[0]
    if full and all(is_uniform(part) and part[0] == full[0][0] for part in full):
        return uniform(int(full[0][0]), sum(part.size for part in full))
    return np.concatenate(full) if full else np.empty(0, dtype=np.int64)
