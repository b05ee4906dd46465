"""The encoding of charges: what is stored says the same as what was charged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.core.few import FEW
from service.workflows.ledger import EncodedCharges, _merged


@given(
    people=st.dictionaries(st.integers(0, 5000), st.booleans(), max_size=80)
    | st.sampled_from([FEW - 1, FEW, FEW + 1]).map(lambda count: dict.fromkeys(range(0, 3 * count, 3), True)),
    uniform=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_charges_are_read_as_they_were_written(people: dict[int, bool], uniform: bool, seed: int) -> None:
    """Whoever was charged, whoever was left out, in order, with every charge: for any mixture of the two."""
    charged = np.array(sorted(slot for slot, active in people.items() if active), dtype=np.int64)
    left_out = np.array(sorted(slot for slot, active in people.items() if not active), dtype=np.int64)
    charges = np.random.default_rng(seed).integers(1, 2**60, charged.size)
    if uniform and charged.size:
        charges = np.broadcast_to(charges[:1], charged.shape)
    encoded = EncodedCharges.of(charged=charged, charges=charges, left_out=left_out)
    assert encoded.touched().tolist() == sorted(people)
    for read, written in zip(encoded.decode(), (charged, charges, left_out), strict=True):
        assert read.tolist() == written.tolist()
    assert (encoded.active is None) == (left_out.size == 0)


def test_telling_the_charged_from_the_left_out_takes_one_pass() -> None:
    """No set operation of numpy's: for a million people theirs took a second, and only where somebody was left out."""
    slots = np.arange(1_000_000)
    out = slots % 20 == 0
    encoded = EncodedCharges.of(charged=slots[~out], charges=np.ones(950_000, dtype=np.int64), left_out=slots[out])
    charged, _, left_out = encoded.decode()
    assert np.array_equal(charged, slots[~out])
    assert np.array_equal(left_out, slots[out])
    assert not {"union1d", "isin", "unique"} & set(_merged.__code__.co_names)
