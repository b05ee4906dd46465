"""Keys that may be another individual's key, written otherwise. An upload warns its curator of them.

Each of these keys still is an individual of its own, with its own budget. Warnings name rows and quote no key: the
report of an upload is stored, and the individual may be erased later.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from service.arrays import Integers, Mask
from service.engine.ingest import Keys
from service.ledger.ports.transaction import Transaction
from service.query.keys import Key

ROWS_NAMED_MAX: Final = 20
_HOW: Final = "only in case, blanks, hidden characters or how a number or a UUID is written"
TWIN: Final = f"another individual's key differs from this one {_HOW}"


def twins(transaction: Transaction, keys: Keys, plain_forms: Mapping[int, str]) -> Mask:
    """The mask of the keys (n,) that have a twin. The keys are distinct, and none is of an individual in the dataset.

    A twin is a key with the same plain form: another of these keys, or the key of an individual in the dataset.
    `plain_forms` has, by place, each plain form that differs from its key.
    """
    forms: Sequence[str] = [plain_forms.get(place, key) for place, key in enumerate(keys)] if plain_forms else keys
    found = transaction.are_plain_forms(forms)
    if plain_forms:
        found[list(plain_forms)] |= transaction.slots_of([Key(form) for form in plain_forms.values()]) >= 0
        written = set(plain_forms.values())
        times = Counter(form for form in forms if form in written)
        found |= [times[form] > 1 for form in forms]
    return found


def twin_words(rows: Integers) -> Iterator[str]:
    """A sentence that names `rows` (n,), counted from 1: the first row of each key that has a twin.

    Nothing without rows.
    """
    if rows.size == 0:
        return
    keys = "1 key differs" if rows.size == 1 else f"{rows.size} keys differ"
    named = ", ".join(map(str, rows[:ROWS_NAMED_MAX].tolist())) + (", ..." if rows.size > ROWS_NAMED_MAX else "")
    place = f"row {named}" if rows.size == 1 else f"rows {named}"
    yield f"{keys} from another individual's {_HOW} ({place}); each is an individual of its own with its own budget"
