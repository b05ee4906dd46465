"""The moves of both plays in their order: queries with their analysts, and the acts between them."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from sparing_audit.accountings import Accounting
from sparing_audit.adversaries import ADVERSARIES, ASKERS, BATCHES, LARGEST_LAST, OFFERS, STOPS, Act, Choice, View
from sparing_audit.game import Asked, Game, Move
from sparing_audit.laws import Places
from sparing_audit.noise import UNITS_PER_RHO, Gaussian, Laplace, Law
from sparing_audit.service import ANALYSTS, Refused, Table

DYADIC: Final = 4096.0
"""A sigma at which charges are whole units without rounding, so that budgets can be met exactly."""
SIGMAS: Final = (DYADIC, 4099.7, DYADIC, 5793.1)
TURNS, REST_FROM = 24, 20
"""The number of turns of the schedule, and the turn from which on adversaries ask for all that is left."""
TURNS_OF_OFFERS, OFFERS_REST_FROM = 18, 9
"""The turns of offers, and the one from which on the adversaries ask for all that is left."""
AHEAD: Final = 1.0
"""The loss, in nats, from which an adversary under a rule takes itself to be ahead."""
ROWS_EVERY: Final = 3
TOGETHER: Final = 4
"""The number of queries in a batch."""
ACTED_ON_MAX: Final = 48
"""The most victims of one act. Each of them takes a request."""

Offers = list[tuple[int, Law]]
"""The number of a victim, and the noise, of each query on offer."""

_BATCHED = frozenset({5, 9, 13})
_REPEATED = frozenset({3, 11, 21})
_BEGINS = {4: Act.PAUSE, 5: Act.CORRECT, 6: Act.LOWER, 7: Act.ERASE, 10: Act.CORRECT, 12: Act.LOWER, 13: Act.PAUSE}
_ENDS = {9: Act.PAUSE, 14: Act.ERASE, 17: Act.PAUSE}


def schedule() -> Iterator[Move]:
    """The moves under one rule of admission."""
    for turn in range(TURNS):
        is_rest, is_repeated, analyst = turn >= REST_FROM, turn in _REPEATED, turn // 2 % ANALYSTS
        sigma = DYADIC if is_rest else SIGMAS[turn % len(SIGMAS)]
        if turn in _ENDS:
            yield partial(end, act=_ENDS[turn])
        if turn in _BEGINS:
            yield partial(begin, act=_BEGINS[turn])
        asked = partial(ask, sigma=sigma, analyst=analyst, is_rest=is_rest)
        yield partial(asked, turn=turn, table="people", is_repeated=is_repeated)
        if turn in _BATCHED:
            yield partial(ask_together, sigma=sigma, analyst=analyst)
        if turn % ROWS_EVERY == ROWS_EVERY - 1:
            yield partial(asked, turn=turn // ROWS_EVERY, table="rows")


def turns(offers: Offers) -> Iterator[Move]:
    """The moves under one accounting, with the same queries on offer in each turn."""
    return (partial(ask_offers, turn=turn, offers=offers) for turn in range(TURNS_OF_OFFERS))


def offered(accounting: Accounting) -> Offers:
    """The number of a victim and the noise of each of OFFERS; under some accounting a Gaussian has no price."""
    found: Offers = []
    for share, is_gaussian in OFFERS:
        units = int(accounting.amount * UNITS_PER_RHO * share)
        if is_gaussian and accounting.has_gaussian:
            found.append((Gaussian(DYADIC).longest(units), Gaussian(DYADIC)))
        else:
            found.append((1, Laplace(accounting.laplace_scale(units / UNITS_PER_RHO), accounting)))
    return found


def ask(
    game: Game, *, turn: int, sigma: float, analyst: int, table: Table, is_rest: bool, is_repeated: bool = False
) -> None:
    """One query about a table, in a turn of its own, as each adversary picks; with `is_rest`, for all that is left."""
    places, law = game.victims.in_table(table), Gaussian(sigma)
    rooms = np.array([law.longest(game.own.room(place).least) for place in places.tolist()], dtype=np.int64)
    lengths = np.zeros(places.size, dtype=np.int64)
    for name, picks in ADVERSARIES.items():
        mine = game.victims.adversary[places] == name
        view = View(
            turn=turn,
            is_ahead=game.losses[places[mine]] > AHEAD,
            room=rooms[mine],
            full=law.longest(game.budget_units),
            is_dyadic=sigma == DYADIC,
            rng=game.rng,
        )
        lengths[mine] = view.room if is_rest and name != STOPS else picks(view)
    asked = game.ask(places, _signed(game, places, lengths), law, analyst=analyst)
    if is_repeated:
        _ask_again(game, asked, analyst)


def ask_together(game: Game, *, sigma: float, analyst: int) -> None:
    """A batch of queries, each of a quarter of the budget, whose weights are chosen before any answer is seen."""
    law, places = Gaussian(sigma), game.victims.of(BATCHES)
    halves = np.full(places.size, law.longest(game.budget_units) // 2)
    chosen = [_signed(game, places, halves) for _ in range(TOGETHER)]
    queries, keys = [game.query(places, lengths, law) for lengths in chosen], [str(uuid.uuid4()) for _ in chosen]
    released = game.service.ask_together(game.dataset, queries, analyst=analyst, keys=keys)
    for lengths, answer in sorted(zip(chosen, released, strict=True), key=lambda pair: pair[1].sequence):
        game.record(places, lengths, law, answer)


def _ask_again(game: Game, asked: Asked, analyst: int) -> None:
    """Retries and reuse have the same numbers and charge nobody; an old key is good for no other query."""
    (query, key, before), again = asked, game.service.ask
    repeats = [(analyst, key, False), *((other, str(uuid.uuid4()), True) for other in range(ANALYSTS))]
    for who, its_key, reuse in repeats:
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
    """Begin an act on those victims of its adversary whose losses are positive, according to the audit's filter."""
    victims, own, places = game.victims, game.own, game.victims.of(act.value)
    ahead = places[(game.losses[places] > 0) & ~victims.is_erased[places]][:ACTED_ON_MAX].tolist()
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
    if act is Act.PAUSE:
        _set_paused(game, np.flatnonzero(game.own.is_paused).tolist(), is_paused=False)
    else:
        game.service.upload(
            game.dataset, "people", game.victims.people(np.flatnonzero(game.victims.is_erased).tolist())
        )
        game.victims.is_erased[:] = False


def ask_offers(game: Game, *, turn: int, offers: Offers) -> None:
    """A turn with several queries on offer; nobody is put into one for whom the rounding of a price would decide."""
    rooms = [game.own.room(place) for place in range(len(game.victims.keys))]
    charges = [law.charge(length) for length, law in offers]
    fits = np.array([[charge.most <= room.least for charge in charges] for room in rooms])
    may_fit = np.array([[charge.least <= room.most for charge in charges] for room in rooms])
    largest = np.full(len(rooms), LARGEST_LAST[-1])
    for offer in LARGEST_LAST:
        largest = np.where(fits[:, offer], offer, largest)
    ahead = game.accounting.deviation / (2 if game.accounting.has_gaussian else 4)
    chosen = np.full(len(rooms), -1)
    for name, picks in ASKERS.items():
        mine = game.victims.of(name)
        view = Choice(turn=turn, is_ahead=game.losses[mine] > ahead, room=largest[mine])
        chosen[mine] = view.room if turn >= OFFERS_REST_FROM and name != STOPS else picks(view)
    for offer, (length, law) in enumerate(offers):
        places = np.flatnonzero((chosen == offer) & (fits[:, offer] == may_fit[:, offer]))
        if places.size > 0:
            game.ask(places, np.full(places.size, length), law, analyst=turn % ANALYSTS)


def _signed(game: Game, places: Places, lengths: Places) -> Places:
    """Lengths with random signs, in whole weights that rows multiply."""
    signs: Places = game.rng.choice(np.array([-1, 1]), places.size)
    return signs * (lengths // game.victims.rows[places])


def _set_paused(game: Game, places: list[int], *, is_paused: bool) -> None:
    game.service.set_paused(game.dataset, [game.victims.keys[place] for place in places], is_paused=is_paused)
    for place in places:
        game.own.is_paused[place] = is_paused
