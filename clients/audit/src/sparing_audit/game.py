"""One dataset under attack by all adversaries at once, with the audit's own filter beside it.

Every victim has a coordinate of its own. So one transcript of the service is as many independent adaptive trials as
there are victims. Everything that the service says about accounts is compared with the audit's filter on the way. The
answers are kept for `checks`.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from sparing_audit.accountings import OF_RULES, Accounting
from sparing_audit.adversaries import ROWS, Act
from sparing_audit.laws import Booleans, Doubles, Places
from sparing_audit.noise import NOTHING, UNITS_PER_RHO, Law, Range
from sparing_audit.own_filter import UNTOUCHED, Filter, Outcome
from sparing_audit.service import Account, Query, Released, Service, Table
from sparing_audit.victims import Victims

COMPARED: Final = ("accounting", "budgets", "charges", "active sets", "limits", "ledger", "own accounts")
"""The comparisons of every play, which allow no difference beyond the range of a price; `retries` are of a rule."""
OWN_ACCOUNTS: Final = 4
"""The number of people whose own accounts are read, each with the receipt of every query."""
SHOWN_MAX: Final = 3
Move = partial[None]
"""A step of a play, which asks or acts on victims: a function of the game."""
Asked = tuple[Query, str, Released]
"""A query with its key and its answer."""
NO_ACCOUNT: Final = Account(-1, -1, -1, -1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """One answered query, with the numbers of the victims at `places` (k,), in steps of its grid."""

    sequence: int
    places: Places
    asked: Doubles  # (k,) the vectors before erasures and the filter, were all victims in the data
    outcomes: Sequence[Outcome]
    values: Doubles  # (k,) the answer, in whole steps
    law: Law
    grid_error: float  # the largest distance of an answer from a whole step

    @property
    def counted(self) -> Doubles:
        """The part of each vector that the audit's filter lets through, (k,)."""
        return np.array([outcome.counted for outcome in self.outcomes], dtype=np.float64)

    def noise(self, is_in: Booleans) -> Doubles:
        """The answer without what was counted of the victims (n,) in the data."""
        return self.values - self.counted * is_in[self.places]

    def numbers(self, is_in: Booleans) -> tuple[int, int]:
        """The numbers of victims in the data that the query charges and that it leaves out."""
        words = Counter(
            outcome.words for outcome, there in zip(self.outcomes, is_in[self.places], strict=True) if there
        )
        return words["charged"] + words["shortened"], words["left_out"]


class Mismatches:
    """The comparisons and the differences found, counted by check, with the first differences of each."""

    def __init__(self) -> None:
        """Begin without a comparison."""
        self.compared, self.counts = Counter[str](), Counter[str]()
        self.first: dict[str, list[str]] = {}

    def expect(self, check: str, said: object, expected: object, *where: object) -> None:
        """Compare what the service said with what is expected, and record a difference."""
        self.compared[check] += 1
        if said != expected:
            self.counts[check] += 1
            if self.counts[check] <= SHOWN_MAX:
                place = " ".join(map(str, where))
                self.first.setdefault(check, []).append(f"{place}: {said}, and not {expected}")


class Game:
    """The play on one dataset.

    Attributes: `victims`; `accounting`, with the budget; `own`, the audit's filter; `losses` (n,), in nats, of each
    victim so far; `recorded`, the queries; `mismatches`.
    """

    def __init__(
        self,
        service: Service,
        dataset: str,
        victims: Victims,
        rng: np.random.Generator,
        *,
        rule: str,
        accounting: Accounting = OF_RULES,
    ) -> None:
        """Register the dataset and upload the victims' records. Raises Refused.

        `clip` is a rule of queries, in a dataset of `skip`.
        """
        self.service, self.dataset, self.victims, self.rng = service, dataset, victims, rng
        self.accounting, self.mismatches, people = accounting, Mismatches(), len(victims.keys)
        self.budget_units = int(accounting.amount * UNITS_PER_RHO)
        self.query_rule = rule if rule == "clip" else None
        made = service.register(dataset, rule="skip" if rule == "clip" else rule, people=people, accounting=accounting)
        self.mismatches.expect("budgets", made.budget_units, self.budget_units, "the budget")
        said, expected = (made.accounting, made.unit), (accounting.document, accounting.unit)
        self.mismatches.expect("accounting", said, expected, "the dataset")
        self.own = Filter(self.budget_units, people, is_dropping=rule == "drop")
        self.losses, self.recorded = np.zeros(people), list[Recorded]()
        self._totals = [NOTHING] * people  # what each account may have spent, one number at the last comparison
        self._accounts = [NO_ACCOUNT] * people  # as they should be
        service.upload(dataset, "people", victims.people(range(people)))
        service.upload(dataset, "rows", victims.all_rows())

    def play(self, moves: Iterable[Move]) -> None:
        """Make all moves, and compare all accounts after each; then compare ledger and own accounts. Raises Refused."""
        for move in moves:
            move(self)
            self.compare_accounts()
        self.compare_ledger()
        self.compare_own_accounts()
        self.service.close(self.dataset)

    def query(self, places: Places, lengths: Places, law: Law) -> Query:
        """The query with one number for each of these victims, which adds the victim's length; all are in one table."""
        table: Table = "rows" if (self.victims.adversary[places] == ROWS).any() else "people"
        coordinates = self.victims.weights(places, lengths)
        return Query(coordinates=coordinates, law=law, table=table, rule=self.query_rule)

    def ask(self, places: Places, lengths: Places, law: Law, *, analyst: int) -> Asked:
        """Ask one query, and record its answer."""
        query, key = self.query(places, lengths, law), str(uuid.uuid4())
        released = self.service.ask(self.dataset, query, analyst=analyst, key=key)
        self.record(places, lengths, law, released)
        return query, key, released

    def record(self, places: Places, lengths: Places, law: Law, released: Released) -> None:
        """Run the audit's filter on a query, and add its answer to the losses."""
        self.mismatches.expect("budgets", released.size, law.size, "the noise of query", released.sequence)
        law, exact = replace(law, size=law.size / released.grid), released.values / released.grid
        asked = np.rint(lengths * self.victims.rows[places] / released.grid)
        there = (asked * ~self.victims.is_erased[places]).astype(np.int64).tolist()
        recorded = Recorded(
            sequence=released.sequence,
            places=places,
            asked=asked,
            outcomes=[
                self.own.decide(place, length, law, shortens=self.query_rule == "clip")
                for place, length in zip(places.tolist(), there, strict=True)
            ],
            values=np.rint(exact),
            law=law,
            grid_error=float(np.abs(exact - np.rint(exact)).max()),
        )
        self.losses[places] += law.losses(recorded.values, recorded.counted)
        for place, outcome, is_in in zip(places.tolist(), recorded.outcomes, self.victims.is_in[places], strict=True):
            if is_in:
                self._totals[place] += outcome.charge
        self.recorded.append(recorded)

    def compare_accounts(self) -> None:
        """Compare every account: what it was charged since the last comparison must be in the range of its prices.

        A blank victim pays nothing, whatever it would have paid if it were in the data.
        """
        accounts = self.service.accounts(self.dataset)
        after = self.recorded[-1].sequence if self.recorded else 0
        names, is_in = self.victims.adversary.tolist(), self.victims.is_in.tolist()
        for place in np.flatnonzero(~self.victims.is_erased).tolist():
            key, limit = self.victims.keys[place], self.own.limits[place]
            said = accounts.get(key, NO_ACCOUNT)
            spent = self._totals[place].nearest(said.spent)
            charged, left_out = (self.own.charged[place], self.own.left_out[place]) if is_in[place] else (0, 0)
            where = (key, names[place], "after query", after)
            self.mismatches.expect("charges", said.spent, spent, *where)
            self.mismatches.expect("active sets", (said.charged, said.left_out), (charged, left_out), *where)
            self.mismatches.expect("limits", said.limit, limit, *where)
            self._accounts[place] = Account(spent, limit, charged, left_out)
            self._totals[place] = Range(spent, spent)

    def compare_ledger(self) -> None:
        """Compare the numbers of people that each query charged and left out. No other entry may be there."""
        said = self.service.ledger(self.dataset)
        expected = {each.sequence: each.numbers(self.victims.is_in) for each in self.recorded}
        for sequence in said.keys() | expected.keys():
            self.mismatches.expect("ledger", said.get(sequence), expected.get(sequence), "query", sequence)

    def compare_own_accounts(self) -> None:
        """Compare some people's own accounts. Each must have a receipt of every query, and the receipts must add up.

        These people are in the data and were never erased, because a key from before an erasure is good for nothing.
        """
        lasting = np.flatnonzero(self.victims.is_in & (self.victims.adversary != Act.ERASE.value))
        for place in self.rng.choice(lasting, min(OWN_ACCOUNTS, lasting.size), replace=False).tolist():
            key = self.victims.keys[place]
            account, listed = self.service.own_account(self.dataset, key)
            self.mismatches.expect("own accounts", account, self._accounts[place], key)
            receipts = {sequence: (words, units) for sequence, words, units in listed}
            total = sum(units for _, _, units in listed)
            self.mismatches.expect("own accounts", total, account.spent, key, "by its receipts")
            for each in self.recorded:
                outcome = dict(zip(each.places.tolist(), each.outcomes, strict=True)).get(place, UNTOUCHED)
                words, units = receipts.get(each.sequence, ("no receipt", 0))
                expected = (outcome.words, outcome.charge.nearest(units))
                self.mismatches.expect("own accounts", (words, units), expected, key, "query", each.sequence)
