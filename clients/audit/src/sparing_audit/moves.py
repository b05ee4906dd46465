"""The moves of both plays in their order: queries, by which analyst, and acts that come between them."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from sparing_audit.accountings import Accounting
from sparing_audit.adversaries import (
    ADVERSARIES,
    ASKERS,
    BATCH,
    OFFERS,
    RESTS,
    STOPS,
    Act,
    Choice,
    Picks,
    View,
    largest_that_fits,
)
from sparing_audit.game import Game, Move
from sparing_audit.laws import Places
from sparing_audit.noise import UNITS_PER_RHO, Gaussian, Laplace, Law
from sparing_audit.service import ANALYSTS, Refused, Table

__all__ = ["DYADIC", "ask", "ask_again", "ask_offers", "ask_together", "begin", "end", "offered", "schedule", "turns"]

DYADIC: Final = 4096.0
"""A sigma at which a unit's charge is whole, so that budgets can be met exactly."""
SIGMAS: Final = (DYADIC, 4099.7, DYADIC, 5793.1)
TURNS, REST_FROM = 24, 20
"""The turns of the schedule, and the one from which on the adversaries ask for all that is left."""
TURNS_OF_OFFERS, OFFERS_REST_FROM = 18, 9
"""The turns of offers, and the one from which on all that is left is asked for."""
ROWS_EVERY: Final = 3
TOGETHER: Final = 4
"""Queries in a batch."""
ACTED_ON_MAX: Final = 48
"""Each act is a request, so that it is done to no more than so many victims at a time."""

Offered = list[tuple[int, Law]]
"""The number of a victim, and the noise, of each query on offer."""

_BATCHED = frozenset({5, 9, 13})
_REPEATED = frozenset({3, 11, 21})
_BEGINS = {4: Act.PAUSE, 5: Act.CORRECT, 6: Act.LOWER, 7: Act.ERASE, 10: Act.CORRECT, 12: Act.LOWER, 13: Act.PAUSE}
_ENDS = {9: Act.PAUSE, 14: Act.ERASE, 17: Act.PAUSE}


def schedule() -> Iterator[Move]:
    """The moves under one rule of admission."""
    for turn in range(TURNS):
        is_rest, analyst = turn >= REST_FROM, turn // 2 % ANALYSTS
        sigma = DYADIC if is_rest else SIGMAS[turn % len(SIGMAS)]
        if turn in _ENDS:
            yield partial(end, act=_ENDS[turn])
        if turn in _BEGINS:
            yield partial(begin, act=_BEGINS[turn])
        yield partial(ask, turn=turn, sigma=sigma, analyst=analyst, table="people", is_rest=is_rest)
        if turn in _REPEATED:
            yield partial(ask_again)
        if turn in _BATCHED:
            yield partial(ask_together, turn=turn, sigma=sigma, analyst=analyst)
        if turn % ROWS_EVERY == ROWS_EVERY - 1:
            yield partial(ask, turn=turn // ROWS_EVERY, sigma=sigma, analyst=analyst, table="rows", is_rest=is_rest)


def turns(accounting: Accounting, offers: Offered) -> Iterator[Move]:
    """The moves under one accounting, with the same queries on offer in each turn."""
    ahead = accounting.deviation / (2 if accounting.has_gaussian else 4)
    return (partial(ask_offers, turn=turn, offers=offers, ahead=ahead) for turn in range(TURNS_OF_OFFERS))


def offered(accounting: Accounting) -> Offered:
    """The number of a victim and the noise of each of OFFERS; under some accounting a Gaussian has no price."""
    found: Offered = []
    for share, is_gaussian in OFFERS:
        units = int(accounting.amount * UNITS_PER_RHO * share)
        if is_gaussian and accounting.has_gaussian:
            found.append((Gaussian(DYADIC).longest(units), Gaussian(DYADIC)))
        else:
            found.append((1, Laplace(accounting.laplace_scale(units / UNITS_PER_RHO), accounting)))
    return found


def ask(game: Game, *, turn: int, sigma: float, analyst: int, table: Table, is_rest: bool) -> None:
    """One query about a table, in a turn of its own, as each adversary picks; with `is_rest`, for all that is left."""
    places, law = game.victims.in_table(table), Gaussian(sigma)
    lengths = _lengths(game, places, RESTS if is_rest else ADVERSARIES, turn, law)
    game.ask(places, lengths, law, analyst=analyst)


def ask_together(game: Game, *, turn: int, sigma: float, analyst: int) -> None:
    """A batch of queries whose weights are chosen before any answer is seen; its turns go on from those of singles."""
    law, places = Gaussian(sigma), np.concatenate([game.victims.of(name) for name in BATCH])
    chosen = [_lengths(game, places, BATCH, turn, law) for _ in range(TOGETHER)]
    queries, keys = [game.query(places, lengths, law) for lengths in chosen], [str(uuid.uuid4()) for _ in chosen]
    released = game.service.ask_together(game.dataset, queries, analyst=analyst, keys=keys)
    for lengths, answer in sorted(zip(chosen, released, strict=True), key=lambda pair: pair[1].sequence):
        game.record(places, lengths, law, answer)


def ask_again(game: Game) -> None:
    """Retries and reuse have the same numbers and charge nobody; an old key is good for no other query."""
    if game.last is None:
        return
    (query, before, analyst, key), again = game.last, game.service.ask
    asked = [(analyst, key, False), *((other, str(uuid.uuid4()), True) for other in range(ANALYSTS))]
    for who, its_key, reuse in asked:
        answer = again(game.dataset, query, analyst=who, key=its_key, reuse=reuse)
        is_same = answer.sequence == before.sequence and np.array_equal(answer.values, before.values)
        said = "the same answer" if is_same else "a new answer"
        game.mismatches.expect("retries", said, "the same answer", "query", before.sequence)
    other = replace(query, law=replace(query.law, size=2 * query.law.size))
    try:
        again(game.dataset, other, analyst=analyst, key=key)
        said = "an answer"
    except Refused:
        said = "a refusal"
    game.mismatches.expect("retries", said, "a refusal", "another query by the key of query", before.sequence)


def begin(game: Game, *, act: Act) -> None:
    """An act on those victims that its adversary is ahead of, as far as the audit's filter knows."""
    victims, own, places = game.victims, game.own, game.victims.of(act.value)
    ahead = places[(game.losses[places] > 0) & ~victims.is_erased[places]][:ACTED_ON_MAX].tolist()
    game.acted.setdefault(act, []).extend(ahead)
    match act:
        case Act.LOWER:
            for place in ahead:
                own.limits[place] = own.spent[place].most + own.room(place).least // 2
            game.service.lower(game.dataset, {victims.keys[place]: own.limits[place] for place in ahead})
        case Act.PAUSE:
            _set_paused(game, ahead, is_paused=True)
        case Act.ERASE:
            game.service.erase(game.dataset, [victims.keys[place] for place in ahead])
            victims.is_erased[ahead] = True
        case Act.CORRECT:
            victims.is_corrected[ahead] ^= True
            game.service.correct(game.dataset, victims.people(ahead))


def end(game: Game, *, act: Act) -> None:
    """The end of an act that lasts, for all victims that it was begun for."""
    places = game.acted.pop(act, [])
    if act is Act.PAUSE:
        _set_paused(game, places, is_paused=False)
    else:
        game.victims.is_erased[places] = False
        game.service.upload(game.dataset, "people", game.victims.people(places))


def ask_offers(game: Game, *, turn: int, offers: Offered, ahead: float) -> None:
    """A turn with several queries on offer; nobody is put into one for whom the rounding of a price would decide.

    From a loss of `ahead` on an adversary takes itself to be ahead.
    """
    rooms = [game.own.room(place) for place in range(len(game.victims.keys))]
    charges = [law.charge(length) for length, law in offers]
    fits = np.array([[charge.most <= room.least for charge in charges] for room in rooms])
    may_fit = np.array([[charge.least <= room.most for charge in charges] for room in rooms])
    chosen = np.full(len(rooms), -1)
    for name, picks in ASKERS.items():
        mine = game.victims.of(name)
        view = Choice(turn=turn, is_ahead=game.losses[mine] > ahead, fits=fits[mine])
        is_rest = turn >= OFFERS_REST_FROM and name != STOPS
        chosen[mine] = largest_that_fits(view) if is_rest else picks(view)
    for offer, (length, law) in enumerate(offers):
        places = np.flatnonzero((chosen == offer) & (fits[:, offer] == may_fit[:, offer]))
        if places.size > 0:
            game.ask(places, np.full(places.size, length), law, analyst=turn % ANALYSTS)


def _lengths(game: Game, places: Places, picks: Mapping[str, Picks], turn: int, law: Gaussian) -> Places:
    """The vectors that the adversaries pick, with random signs, in whole weights that rows multiply."""
    rooms = np.array([law.longest(game.own.room(place).least) for place in places.tolist()], dtype=np.int64)
    lengths = np.zeros(places.size, dtype=np.int64)
    for name, pick in picks.items():
        mine = game.victims.adversary[places] == name
        if mine.any():
            view = View(
                turn=turn,
                full=law.longest(game.budget_units),
                loss=game.losses[places[mine]],
                room=rooms[mine],
                is_dyadic=law.size == DYADIC,
                rng=game.rng,
            )
            lengths[mine] = pick(view)
    signs: Places = game.rng.choice(np.array([-1, 1]), places.size)
    return signs * (lengths // game.victims.rows[places])


def _set_paused(game: Game, places: list[int], *, is_paused: bool) -> None:
    game.service.set_paused(game.dataset, [game.victims.keys[place] for place in places], is_paused=is_paused)
    for place in places:
        game.own.is_paused[place] = is_paused
