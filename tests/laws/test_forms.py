"""The form of a block decides nothing: lists, stretches and any cut give the same answer, accounts, counters and bytes.

Every node of the query language, over a crowd in which some have paused, some can pay for nothing, some for one query
more, and some slots are empty.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from service.core.release import Contributions, Release, Terms
from service.core.renyi_filter import Accounts, Touched
from service.engine.evaluate import contributions
from service.engine.pages import Counters
from service.workflows.model.pieces import joined, pieces_digest, pieces_of
from service.workflows.shards.shard import measure_of
from tests.core.contributions import as_list, as_stretch, in_parts, sparse
from tests.core.injected import seeded
from tests.core.releases import answer
from tests.laws.every_node import documents
from tests.laws.node_law import answered
from tests.laws.node_world import memory_of_crowd

Json = dict[str, Any]
Form = Callable[[Sequence[Contributions]], Iterable[Contributions]]
SALT = bytes(range(32))
SIZES = (1, 3, 1000)
DENSITIES = (0.0, 0.01, 0.5, 1.0)
SLOTS = 3 * 2**15 + 77


def accounts(size: int, seed: int) -> Accounts:
    """Some have paused, some have nothing left, some little."""
    random = np.random.default_rng(seed)
    limits = random.choice([0, 1, 2**20, 2**40, 2**61], size)
    spent = np.minimum(random.choice([0, 1, 2**19], size), 2**61)
    return Accounts.of(spent=spent, limits=limits, paused=random.random(size) < 0.1)


def told(
    blocks: Iterable[Contributions], *, plan: tuple[int, float, int], size: int, seed: int, shortens: bool = False
) -> tuple[Release, list[Any]]:
    """The release, and everything that is kept of it; `plan` is dimension, sigma in steps and the largest norm."""
    book, counters = accounts(size, seed), Counters()
    counters.grow(size)
    dimension, sigma_steps, largest = plan
    terms = Terms(dimension=dimension, sigma_steps=sigma_steps, norm_squared_max=largest, shortens=shortens)
    release = answer(blocks, book, terms, entropy=seeded(seed))
    for block in release.blocks:
        counters.count(block.touched, block.active)
    pieces = pieces_of(release.blocks, measure_of(release), amount_max=largest, slots=size, salt=SALT)
    return release, [
        release.values.tolist(),
        (release.charged_count, release.left_out_count, release.charged_units),
        book.spent.tolist(),
        (counters.charged.tolist(), counters.left_out.tolist()),
        [(piece.number, piece.content) for piece in pieces],
        pieces_digest(pieces),
    ]


FORMS: Sequence[Form] = (
    lambda blocks: map(as_list, blocks),
    lambda blocks: map(as_stretch, blocks),
    *(lambda blocks, size=size: chain.from_iterable(in_parts(block, size) for block in blocks) for size in SIZES),
    *(
        lambda blocks, size=size: map(as_stretch, chain.from_iterable(in_parts(block, size) for block in blocks))
        for size in SIZES
    ),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=documents(), seed=st.integers(0, 2**20), shortens=st.booleans())
def test_every_form_of_a_query_of_any_nodes_is_the_same(document: Json, seed: int, *, shortens: bool) -> None:
    """As the engine makes the blocks, as lists, as stretches, and cut after every so many individuals."""
    outcome = answered(document)
    assume(outcome is not None)
    assert outcome is not None
    memory, query = memory_of_crowd(), outcome.plan
    plan = query.dimension, query.sigma_steps, query.clip_squared_steps
    blocks, size = list(map(sparse, contributions(query, memory))), memory.accounts.size

    _, expected = told(blocks, plan=plan, size=size, seed=seed, shortens=shortens)

    for form in FORMS:
        assert told(form(blocks), plan=plan, size=size, seed=seed, shortens=shortens)[1] == expected


@cache
def crowd(density: float, *, one_norm: bool) -> Contributions:
    """So large a share of three pieces and a few slots, with norms of their own or one for all."""
    slots = np.flatnonzero(np.random.default_rng(5).random(SLOTS) < density)
    values = np.ones(slots.size, dtype=np.int64) if one_norm else 1 + slots % 200
    return Contributions(
        touched=Touched(slots),
        norms_squared=np.broadcast_to(np.int64(1), slots.size) if one_norm else np.square(values),
        dimension=7,
        owners=None,
        coordinates=slots % 7,
        values=values,
        one_norm=one_norm,
    )


@pytest.mark.parametrize("one_norm", [False, True])
@pytest.mark.parametrize("density", DENSITIES)
def test_every_density_is_the_same_in_every_form(density: float, *, one_norm: bool) -> None:
    """Entries of one piece and of several, of lists and of flags; read again, they say who was charged."""
    block, plan = crowd(density, one_norm=one_norm), (7, 40.5, 2**16 - 1)
    cuts = ([block], [as_stretch(block)], in_parts(block, 9999), list(map(as_stretch, in_parts(block, 2**15))))

    release, expected = told(cuts[0], plan=plan, size=SLOTS, seed=1)

    assert all(told(cut, plan=plan, size=SLOTS, seed=1)[1] == expected for cut in cuts[1:])
    pieces = pieces_of(release.blocks, measure_of(release), amount_max=plan[2], slots=SLOTS, salt=SALT)
    assert joined(pieces).touched.tolist() == block.touched.slots().tolist()
    assert joined(pieces).amounts.tolist() == block.norms_squared.tolist()
    assert int(joined(pieces).active.sum()) == release.charged_count


@pytest.mark.parametrize("density", [0.01, 0.5, 1.0])
def test_shortened_vectors_are_the_same_in_every_form(density: float) -> None:
    """Some can pay for their vectors, some for a part and some for nothing."""
    block, plan = crowd(density, one_norm=False), (7, 40.5, 2**16 - 1)
    cuts = ([block], [as_stretch(block)], in_parts(block, 9999), list(map(as_stretch, in_parts(block, 2**15))))

    release, expected = told(cuts[0], plan=plan, size=SLOTS, seed=1, shortens=True)

    assert all(told(cut, plan=plan, size=SLOTS, seed=1, shortens=True)[1] == expected for cut in cuts[1:])
    (told_of,) = release.blocks
    assert told_of.asked is not None
    shorter = told_of.active & (told_of.norms_squared < told_of.asked)
    assert 0 < int(shorter.sum()) < release.charged_count < told_of.count


def test_another_form_of_the_norm_is_seen() -> None:
    """A planted mistake: norms that are one by chance are taken for one by the query."""
    block, plan = crowd(0.5, one_norm=True), (7, 40.5, 2**16 - 1)
    others = [
        Contributions(
            touched=block.touched,
            norms_squared=block.norms_squared.copy(),
            dimension=7,
            owners=None,
            coordinates=block.coordinates,
            values=block.values,
        )
    ]

    assert told(others, plan=plan, size=SLOTS, seed=1)[1] != told([block], plan=plan, size=SLOTS, seed=1)[1]
