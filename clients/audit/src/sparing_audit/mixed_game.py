"""One dataset of an accounting under attack, by adversaries that ask with Gaussian and with Laplace noise.

Each victim has a coordinate of its own: a matrix gives each a number with Gaussian noise, a histogram of listed values
a 1 with Laplace noise. The accounting is read from the service's description, and what its accounts say must lie within
the prices that the audit works out for it.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_audit.accountings import ACCOUNTINGS, Accounting, Range, accounting_of
from sparing_audit.askers import ASKERS, OFFERS, Offer, TurnView, rest_of
from sparing_audit.comparison import Mismatches
from sparing_audit.laplace import Integers, laplace_losses
from sparing_audit.own_filter import charge_units, longest_within, price_of
from sparing_audit.ranged_filter import Fate, RangedFilter
from sparing_audit.schedule import DYADIC
from sparing_audit.service import (
    ANALYSTS,
    UNITS_PER_RHO,
    Account,
    HistogramQuery,
    MatrixQuery,
    Query,
    Registration,
    Released,
    Service,
)

__all__ = ["AMOUNTS", "MIXED_COMPARED", "MixedGame", "Told"]

AMOUNTS: Final = {"gdp": 0.5, "zcdp": 0.5, "rdp": 0.125, "pure": 2.0}
"""The budget of each kind: such that twice of it shows at once, and of an order such that its moment may be seen."""
TURNS: Final = 18
REST_FROM: Final = 9
"""From this turn on all adversaries but those that stop ask for the largest that fits."""
OWN_ACCOUNTS: Final = 4
MIXED_COMPARED: Final = ("accounting", "budgets", "charges", "active sets", "limits", "ledger", "own accounts")
"""The checks that compare, and allow no difference beyond the range of a price."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """One answered query about the victims at `places` (k,), in whole steps of its grid."""

    sequence: int
    places: Integers
    asked: Integers  # (k,) each number, were the victim in the data
    is_counted: NDArray[np.bool_]  # (k,) whether the audit's filter lets it through
    steps: Integers  # (k,) the answer
    scale_steps: float  # of Laplace noise its scale, of a Gaussian sigma
    is_laplace: bool
    grid_error: float  # the largest distance of an answer from a whole step, in steps


class MixedGame:
    """The play on one dataset.

    Attributes: `accounting`; `amount`, the budget; `is_in` and `losses` (n,), in nats, and `asker` (n,), the place of
    each victim's adversary in ASKERS; `own`, the audit's filter; `offered`, of each of OFFERS the number of a victim,
    the sigma or scale and the charge; `told`, the queries; `mismatches`.
    """

    def __init__(
        self, service: Service, *, dataset: str, kind: str, rule: str, people: int, rng: np.random.Generator
    ) -> None:
        """Register the dataset, read its accounting, and upload the victims. Raises Refused and ValueError."""
        self._service, self._dataset, self.rng = service, dataset, rng
        self.amount, self.mismatches = AMOUNTS[kind], Mismatches()
        units = int(self.amount * UNITS_PER_RHO)
        budget = service.register(
            Registration(
                dataset=dataset,
                rule=rule,
                rho=self.amount,
                people=people,
                values=people,
                accounting=ACCOUNTINGS[kind].document,
            )
        )
        described = service.described(dataset)
        self.accounting = accounting_of(described.accounting)
        same = self.accounting == ACCOUNTINGS[kind] and described.unit == self.accounting.unit
        self.mismatches.expect("accounting", holds=same, words=f"{described.accounting} in {described.unit}")
        holds = budget == described.budget_units == units
        self.mismatches.expect("budgets", holds=holds, words=f"{self.amount} are {budget} units, and not {units}")
        self.own = RangedFilter(units, people, is_dropping=rule == "drop")
        self.keys, self.asker = [f"v{place}" for place in range(people)], np.arange(people) % len(ASKERS)
        self.is_in = rng.permutation(people) < people // 2
        self.losses, self.told = np.zeros(people), list[Told]()
        self._spent = dict.fromkeys(self.keys, 0)
        self._pending: dict[str, Range] = {}  # of this turn, by key of a victim in the data that is charged
        service.upload_people(
            dataset, {key: place if self.is_in[place] else None for place, key in enumerate(self.keys)}
        )
        self.offered = [_offered(offer, self.accounting, units) for offer in OFFERS]

    @property
    def ahead(self) -> float:
        """The loss from which an adversary takes itself to be ahead: a deviation at a quarter of the budget."""
        return float(np.sqrt(self.amount / 2)) if self.accounting.has_gaussian else self.amount / 4

    def play(self) -> None:
        """All turns, each with the comparison of all accounts; then ledger and own accounts. Raises Refused."""
        for turn in range(TURNS):
            for offer, places in enumerate(self._choose(turn)):
                if places.size > 0:
                    self._ask(offer, places, analyst=turn % ANALYSTS)
            self._compare_accounts(self._service.accounts(self._dataset))
        self._compare_ledger()
        self._compare_own_accounts()
        self._service.close(self._dataset)

    def _choose(self, turn: int) -> list[Integers]:
        """By offer the places that are put into it; nobody for whom the rounding of a price would decide."""
        fates = np.array(
            [[self.own.fate(place, charge).value for _, _, charge in self.offered] for place in range(self.asker.size)]
        )
        chosen = np.full(self.asker.size, -1)
        for number, (name, picks) in enumerate(ASKERS.items()):
            mine = np.flatnonzero(self.asker == number)
            fits = fates[mine] == Fate.CHARGED.value
            view = TurnView(turn=turn, is_ahead=self.losses[mine] > self.ahead, fits=fits)
            chosen[mine] = picks(view) if turn < REST_FROM else rest_of(name, view)
        return [
            np.flatnonzero((chosen == offer) & (fates[:, offer] != Fate.OPEN.value))
            for offer in range(len(self.offered))
        ]

    def _ask(self, offer: int, places: Integers, *, analyst: int) -> None:
        length, noise, charge = self.offered[offer]
        query: Query
        if self._is_laplace(offer):
            query = HistogramQuery(values=tuple(places.tolist()), scale=noise)
        else:
            query = MatrixQuery(
                table="people", coordinates=tuple({place: length} for place in places.tolist()), sigma=noise
            )
        released = self._service.ask(self._dataset, query, analyst=analyst, key=str(uuid.uuid4()), reuse=False)
        is_counted = self.own.decide(places.tolist(), [charge] * places.size)
        self._record(offer, places, np.array(is_counted), released)

    def _is_laplace(self, offer: int) -> bool:
        return not (OFFERS[offer].is_gaussian and self.accounting.has_gaussian)

    def _record(self, offer: int, places: Integers, is_counted: NDArray[np.bool_], released: Released) -> None:
        """Add an answer to the losses."""
        length, noise, charge = self.offered[offer]
        stated = released.scale if self._is_laplace(offer) else released.sigma
        self.mismatches.expect("budgets", holds=stated == noise, words=f"noise of {noise} became {stated}")
        exact = released.values / released.grid
        steps = np.rint(exact).astype(np.int64)
        asked = np.full(places.size, round(length / released.grid))
        counted, scale = asked * is_counted, noise / released.grid
        if self._is_laplace(offer):
            losses = laplace_losses(steps, counted, scale)
        else:
            losses = (steps * counted - counted**2 / 2) / scale**2
        self.losses[places] += losses
        for place in places[is_counted & self.is_in[places]].tolist():
            self._pending[self.keys[place]] = charge
        self.told.append(
            Told(
                sequence=released.sequence,
                places=places,
                asked=asked,
                is_counted=is_counted,
                steps=steps,
                scale_steps=scale,
                is_laplace=self._is_laplace(offer),
                grid_error=float(np.abs(exact - steps).max()),
            )
        )

    def _compare_accounts(self, accounts: Mapping[str, Account]) -> None:
        """The charges of each account since the turn before are within the range of the price."""
        nothing = Range(0, 0)
        for place, key in enumerate(self.keys):
            said, charge = accounts.get(key), self._pending.get(key, nothing)
            if said is None:
                self.mismatches.expect("charges", holds=False, words=f"{key} has no account")
                continue
            charged = said.spent - self._spent[key]
            counters = (self.own.charged[place], self.own.left_out[place]) if self.is_in[place] else (0, 0)
            words = f"{key}: charged {charged}, and not {charge.least} to {charge.most}"
            self.mismatches.expect("charges", holds=charge.least <= charged <= charge.most, words=words)
            words = f"{key}: {said.charged} and {said.left_out} charged and left out, and not {counters}"
            self.mismatches.expect("active sets", holds=(said.charged, said.left_out) == counters, words=words)
            words = f"{key}: a limit of {said.limit}, spent {said.spent}"
            self.mismatches.expect("limits", holds=said.spent <= said.limit == self.own.limit, words=words)
            self._spent[key] = said.spent
        self._pending = {}

    def _compare_ledger(self) -> None:
        said = {entry.sequence: (entry.charged, entry.left_out) for entry in self._service.ledger(self._dataset)}
        expected = {
            each.sequence: (int((is_in & each.is_counted).sum()), int((is_in & ~each.is_counted).sum()))
            for each in self.told
            for is_in in [self.is_in[each.places]]
        }
        for sequence in said.keys() | expected.keys():
            words = f"query {sequence}: {said.get(sequence)} charged and left out, and not {expected.get(sequence)}"
            self.mismatches.expect("ledger", holds=said.get(sequence) == expected.get(sequence), words=words)

    def _compare_own_accounts(self) -> None:
        """Of some people: the total is the curator's, and the receipts are of the right queries and add up to it."""
        lasting: Sequence[int] = np.flatnonzero(self.is_in).tolist()
        for place in self.rng.choice(lasting, min(OWN_ACCOUNTS, len(lasting)), replace=False).tolist():
            own, key = self._service.own_account(self._dataset, self.keys[place]), self.keys[place]
            told = {each.sequence: each for each in self.told if place in each.places}
            expected = {
                sequence: "charged" if each.is_counted[each.places == place][0] else "left_out"
                for sequence, each in told.items()
            }
            outcomes = {each.sequence: each.outcome for each in own.receipts if each.outcome != "untouched"}
            total = sum(each.units for each in own.receipts)
            holds = outcomes == expected and total == own.account.spent == self._spent[key]
            words = f"{key} reads {own.account.spent} spent, and receipts of {total} units in all"
            self.mismatches.expect("own accounts", holds=holds, words=words)


def _offered(offer: Offer, accounting: Accounting, budget_units: int) -> tuple[int, float, Range]:
    """The number of each victim, the sigma or scale, and the charge."""
    share = int(budget_units * offer.share)
    if offer.is_gaussian and accounting.has_gaussian:
        price = price_of(DYADIC)
        length = longest_within(share, price)
        units = charge_units(length, price)
        return length, DYADIC, Range(units, units)
    scale = accounting.laplace_scale(share / UNITS_PER_RHO)
    return 1, scale, accounting.laplace_charge(1, scale)
