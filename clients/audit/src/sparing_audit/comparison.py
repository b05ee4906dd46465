"""The service's word about accounts, receipts and its ledger, compared exactly with the audit's own filter."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparing_audit.own_filter import Filter, Outcome
from sparing_audit.service import Account, Doubles, LedgerEntry, OwnAccount, OwnReceipt
from sparing_audit.victims import Places, Victims

__all__ = ["COMPARED", "Mismatches", "Recorded", "compare_accounts", "compare_ledger", "compare_own_account"]

COMPARED: Final = ("budgets", "charges", "active sets", "limits", "ledger", "own accounts", "retries")
"""The checks that compare, and allow no difference."""
SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """One answered query: its coordinates are those of the victims at `places` (k,); vectors have the weights' unit."""

    sequence: int
    places: Places
    asked: Doubles  # (k,) the vectors before erasures and the filter, were all victims in the data
    counted: Doubles  # (k,) what the audit's filter lets through of them
    outcomes: tuple[Outcome, ...]
    values: Doubles  # (k,) the answer
    sigma: float
    grid: float


@dataclass(slots=True)
class Mismatches:
    """By check, how often the service's word was compared, how often it differed, and the first differences."""

    compared: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[str]] = field(default_factory=dict)

    def expect(self, check: str, *, holds: bool, words: str) -> None:
        """Compare once, and record a difference."""
        self.compared[check] += 1
        if not holds:
            self.counts[check] += 1
            if self.counts[check] <= SHOWN_MAX:
                self.first.setdefault(check, []).append(words)


def compare_accounts(
    accounts: Mapping[str, Account], *, victims: Victims, own: Filter, mismatches: Mismatches, after: int
) -> None:
    """Every account after a query. A blank victim pays nothing, whatever it would have paid if it were in the data."""
    for place, key in enumerate(victims.keys):
        if victims.is_erased[place]:
            continue
        said, expected = accounts.get(key), _account_of(place, victims, own)
        if said == expected:
            mismatches.compared.update(("charges", "active sets", "limits"))
            continue
        who = f"{key} ({victims.adversary_of(place)[0]}), after query {after}"
        counters = (expected.charged, expected.left_out)
        mismatches.expect(
            "charges",
            holds=said is not None and said.spent == expected.spent,
            words=f"{who}: spent {said.spent if said is not None else None} units, and not {expected.spent}",
        )
        mismatches.expect(
            "active sets",
            holds=said is not None and (said.charged, said.left_out) == counters,
            words=f"{who}: {_counters(said)}, and not {_counters(expected)}",
        )
        mismatches.expect(
            "limits",
            holds=said is not None and said.limit == expected.limit,
            words=f"{who}: a limit of {said.limit if said is not None else None} units, and not {expected.limit}",
        )


def compare_ledger(
    entries: Iterable[LedgerEntry], recorded: Sequence[Recorded], victims: Victims, mismatches: Mismatches
) -> None:
    """The numbers of people that each query charged and left out, and that there is no other entry."""
    said = {entry.sequence: (entry.charged, entry.left_out) for entry in entries}
    mismatches.expect(
        "ledger",
        holds=said.keys() == {each.sequence for each in recorded},
        words=f"{len(said)} entries for {len(recorded)} queries",
    )
    for each in recorded:
        outcomes = [
            outcome for outcome, is_in in zip(each.outcomes, victims.is_in[each.places].tolist(), strict=True) if is_in
        ]
        expected = sum(outcome.units > 0 for outcome in outcomes), sum(outcome.is_left_out for outcome in outcomes)
        mismatches.expect(
            "ledger",
            holds=said.get(each.sequence) == expected,
            words=f"query {each.sequence}: {said.get(each.sequence)} charged and left out, and not {expected}",
        )


def compare_own_account(
    said: OwnAccount, place: int, recorded: Sequence[Recorded], own: Filter, victims: Victims, mismatches: Mismatches
) -> None:
    """A person's own account, and its receipt of every query."""
    key = victims.keys[place]
    expected = _account_of(place, victims, own)
    mismatches.expect(
        "own accounts", holds=said.account == expected, words=f"{key} reads {said.account}, and not {expected}"
    )
    receipts = {receipt.sequence: receipt for receipt in said.receipts}
    for each in recorded:
        wanted = _receipt_of(place, each)
        mismatches.expect(
            "own accounts",
            holds=receipts.get(each.sequence) == wanted,
            words=f"{key} reads {receipts.get(each.sequence)}, and not {wanted}",
        )


def _account_of(place: int, victims: Victims, own: Filter) -> Account:
    if not victims.is_in[place]:
        return Account(spent=0, limit=own.limits[place], charged=0, left_out=0)
    return Account(
        spent=own.spent[place], limit=own.limits[place], charged=own.charged[place], left_out=own.left_out[place]
    )


def _receipt_of(place: int, recorded: Recorded) -> OwnReceipt:
    """A victim without a coordinate in a query is untouched by it."""
    found = (recorded.places == place).nonzero()[0]
    outcome = recorded.outcomes[found[0]] if found.size > 0 else Outcome(counted=0, units=0)
    words = "left_out" if outcome.is_left_out else "charged" if outcome.units > 0 else "untouched"
    words = "shortened" if outcome.is_shortened else words
    return OwnReceipt(sequence=recorded.sequence, outcome=words, units=outcome.units)


def _counters(account: Account | None) -> str:
    return "no account" if account is None else f"charged {account.charged} and left out {account.left_out} times"
