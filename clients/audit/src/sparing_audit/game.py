"""One dataset under attack by all adversaries at once, with the audit's own filter beside it.

Every victim has a coordinate of its own, so that one transcript of the service is as many independent adaptive trials
as there are victims. Whatever the service says about accounts is compared with the audit's filter on the way; the
answers are kept for `checks`.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sparing_audit.adversaries import ADVERSARIES, Act, Adversary, View
from sparing_audit.comparison import Mismatches, Recorded, compare_accounts, compare_ledger, compare_own_account
from sparing_audit.own_filter import Filter, longest_within, price_of
from sparing_audit.schedule import DYADIC, Again, Asks, Begins, Ends, Together, schedule
from sparing_audit.service import (
    ANALYSTS,
    UNITS_PER_RHO,
    Doubles,
    MatrixQuery,
    Refused,
    Registration,
    Released,
    Service,
)
from sparing_audit.victims import Places, Victims

__all__ = ["RHO", "Game"]

RHO = 8
"""The budget of the audit's datasets, mu = 4: large, so that a loss that is 5 % too large shows in one run."""
ACTED_ON_MAX = 48
"""Each act is a request, so that it is done to no more than so many victims at a time."""
OWN_ACCOUNTS = 4
"""Of so many people the own accounts are read, each with the receipt of every query."""


class Game:
    """The play on one dataset.

    Attributes: `victims`; `own`, the audit's filter; `losses` (n,), in nats, of each victim so far; `recorded`, the
    queries; `mismatches`.
    """

    def __init__(
        self,
        service: Service,
        *,
        dataset: str,
        rule: str,
        query_rule: str | None,
        victims: Victims,
        rng: np.random.Generator,
    ) -> None:
        """Register the dataset and upload the victims' records. Raises Refused."""
        self.victims, self.mismatches = victims, Mismatches()
        self._service, self._dataset, self._rng = service, dataset, rng
        self._query_rule = query_rule
        people = len(victims.keys)
        budget = service.register(Registration(dataset=dataset, rule=rule, rho=RHO, people=people, values=2 * people))
        self.own = Filter([RHO * UNITS_PER_RHO] * people, is_dropping=rule == "drop")
        self.mismatches.expect("budgets", holds=budget == RHO * UNITS_PER_RHO, words=f"{RHO} rho are {budget} units")
        self.losses: Doubles = np.zeros(people)
        self.recorded: list[Recorded] = []
        self._last: tuple[MatrixQuery, Released, int, str] | None = None
        self._acted: dict[Act, list[int]] = {}
        service.upload_people(dataset, victims.people(range(people)))
        service.upload_rows(dataset, victims.all_rows())

    def play(self) -> None:
        """All steps of the schedule, then the comparison of the ledger and of some own accounts. Raises Refused."""
        for step in schedule():
            match step:
                case Asks():
                    self._ask(step)
                case Together():
                    self._ask_together(step)
                case Again():
                    self._ask_again()
                case Begins(act):
                    self._begin(act)
                case Ends(act):
                    self._end(act)
            accounts = self._service.accounts(self._dataset)
            compare_accounts(
                accounts, victims=self.victims, own=self.own, mismatches=self.mismatches, after=self._sequence()
            )
        compare_ledger(self._service.ledger(self._dataset), self.recorded, self.victims, self.mismatches)
        self._compare_own_accounts()
        self._service.close(self._dataset)

    def _ask(self, step: Asks) -> None:
        places = self.victims.in_table(step.table)
        lengths = self._lengths(places, step.turn, step.sigma, _rest if step.is_rest else _single)
        query = MatrixQuery(
            table=step.table,
            coordinates=tuple(self.victims.weights(places, lengths)),
            sigma=step.sigma,
            rule=self._query_rule,
        )
        key = str(uuid.uuid4())
        released = self._service.ask(self._dataset, query, analyst=step.analyst, key=key, reuse=False)
        self._last = (query, released, step.analyst, key)
        self._record(places, lengths, released, step.sigma)

    def _ask_together(self, step: Together) -> None:
        """Queries whose weights are chosen before any of their answers is seen."""
        places = np.concatenate([self.victims.of(name) for name, each in ADVERSARIES.items() if each.picks_together])
        chosen = [self._lengths(places, step.turn, step.sigma, _together) for _ in range(step.count)]
        queries = [
            MatrixQuery(
                table="people",
                coordinates=tuple(self.victims.weights(places, lengths)),
                sigma=step.sigma,
                rule=self._query_rule,
            )
            for lengths in chosen
        ]
        keys = [str(uuid.uuid4()) for _ in queries]
        released = self._service.ask_together(self._dataset, queries, analyst=step.analyst, keys=keys)
        for lengths, answer in sorted(zip(chosen, released, strict=True), key=lambda pair: pair[1].sequence):
            self._record(places, lengths, answer, step.sigma)

    def _ask_again(self) -> None:
        """Retries and reuse have the same numbers and charge nobody; an old key is good for no other query."""
        if self._last is None:
            return
        query, before, analyst, key = self._last
        asked = [(analyst, key, False), *((other, str(uuid.uuid4()), True) for other in range(ANALYSTS))]
        again = [self._service.ask(self._dataset, query, analyst=who, key=k, reuse=reuse) for who, k, reuse in asked]
        for answer in again:
            same = np.array_equal(answer.values, before.values) and answer.sequence == before.sequence
            self.mismatches.expect("retries", holds=same, words=f"query {before.sequence} was answered anew")
        changed = replace(query, sigma=2 * query.sigma)
        try:
            self._service.ask(self._dataset, changed, analyst=analyst, key=key, reuse=False)
            is_refused = False
        except Refused:
            is_refused = True
        words = f"the key of query {before.sequence} was good for another query"
        self.mismatches.expect("retries", holds=is_refused, words=words)

    def _lengths(self, places: Places, turn: int, sigma: float, pick: Callable[[Adversary, View], Places]) -> Places:
        """The vectors that the adversaries pick, with random signs, in whole weights that rows multiply."""
        price = price_of(sigma)
        rooms = np.array([longest_within(self.own.room(place), price) for place in places.tolist()], dtype=np.int64)
        lengths = np.zeros(places.size, dtype=np.int64)
        for number, adversary in enumerate(ADVERSARIES.values()):
            mine = self.victims.adversary[places] == number
            view = View(
                turn=turn,
                full=longest_within(RHO * UNITS_PER_RHO, price),
                loss=self.losses[places[mine]],
                room=rooms[mine],
                is_dyadic=sigma == DYADIC,
                rng=self._rng,
            )
            if mine.any():
                lengths[mine] = pick(adversary, view)
        signs = self._rng.choice(np.array([-1, 1]), places.size)
        return signs * (lengths // np.maximum(self.victims.rows[places], 1))

    def _record(self, places: Places, lengths: Places, released: Released, sigma: float) -> None:
        """Run the audit's filter on the query, and add its answer to the losses."""
        self.mismatches.expect("budgets", holds=released.sigma == sigma, words=f"sigma {sigma} became {released.sigma}")
        scale, price = 1 / Fraction(released.grid), price_of(released.sigma / released.grid)
        asked = lengths * np.maximum(self.victims.rows[places], 1)
        outcomes = tuple(
            self.own.decide(
                place, length * scale.numerator // scale.denominator, price, shortens=self._query_rule == "clip"
            )
            for place, length in zip(places.tolist(), (asked * ~self.victims.is_erased[places]).tolist(), strict=True)
        )
        counted = np.array([each.counted * released.grid for each in outcomes])
        self.losses[places] += (released.values * counted - counted**2 / 2) / sigma**2
        self.recorded.append(
            Recorded(
                sequence=released.sequence,
                places=places,
                asked=asked.astype(np.float64),
                counted=counted,
                outcomes=outcomes,
                values=released.values,
                sigma=sigma,
                grid=released.grid,
            )
        )

    def _begin(self, act: Act) -> None:
        """An act on the victims that its adversary is ahead of, as far as the audit's filter knows."""
        (name,) = (name for name, adversary in ADVERSARIES.items() if adversary.act is act)
        places = self.victims.of(name)
        ahead = places[(self.losses[places] > 0) & ~self.victims.is_erased[places]][:ACTED_ON_MAX].tolist()
        keys = [self.victims.keys[place] for place in ahead]
        self._acted.setdefault(act, []).extend(ahead)
        match act:
            case Act.LOWER:
                limits = {place: self.own.spent[place] + self.own.room(place) // 2 for place in ahead}
                self._service.lower(self._dataset, {self.victims.keys[place]: units for place, units in limits.items()})
                for place, units in limits.items():
                    self.own.limits[place] = units
            case Act.PAUSE:
                self._service.pause(self._dataset, keys)
                self._set_paused(ahead, paused=True)
            case Act.ERASE:
                self._service.erase(self._dataset, keys)
                self.victims.is_erased[ahead] = True
            case Act.CORRECT:
                self.victims.is_corrected[ahead] ^= True
                self._service.correct(self._dataset, self.victims.people(ahead))

    def _end(self, act: Act) -> None:
        """The end of an act that lasts."""
        places = self._acted.pop(act, [])
        match act:
            case Act.PAUSE:
                self._service.resume(self._dataset, [self.victims.keys[place] for place in places])
                self._set_paused(places, paused=False)
            case Act.ERASE:
                self.victims.is_erased[places] = False
                self._service.upload_people(self._dataset, self.victims.people(places))

    def _set_paused(self, places: Sequence[int], *, paused: bool) -> None:
        for place in places:
            self.own.is_paused[place] = paused

    def _compare_own_accounts(self) -> None:
        """Of some people in the data; a key from before an erasure would be good for nothing."""
        lasting = [place for place in np.flatnonzero(self.victims.is_in).tolist() if not self._was_erased(place)]
        for place in self._rng.choice(lasting, min(OWN_ACCOUNTS, len(lasting)), replace=False).tolist():
            account = self._service.own_account(self._dataset, self.victims.keys[place])
            compare_own_account(account, place, self.recorded, self.own, self.victims, self.mismatches)

    def _sequence(self) -> int:
        return self.recorded[-1].sequence if self.recorded else 0

    def _was_erased(self, place: int) -> bool:
        return self.victims.adversary_of(place)[1].act is Act.ERASE


def _single(adversary: Adversary, view: View) -> Places:
    return adversary.picks(view)


def _rest(adversary: Adversary, view: View) -> Places:
    return view.room if adversary.spends_rest else np.zeros_like(view.room)


def _together(adversary: Adversary, view: View) -> Places:
    return adversary.picks(view) if adversary.picks_together is None else adversary.picks_together(view)
