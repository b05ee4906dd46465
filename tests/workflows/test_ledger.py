"""The encoding of charges: what is stored says the same as what was charged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.workflows.ledger import EncodedCharges


@given(
    people=st.dictionaries(st.integers(0, 5000), st.booleans(), max_size=80),
    uniform=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_charges_are_read_as_they_were_written(people: dict[int, bool], uniform: bool, seed: int) -> None:
    """Whoever was charged, whoever was left out, in order, with every charge: for any mixture of the two."""
    touched = np.array(sorted(people), dtype=np.int64)
    active = np.array([people[slot] for slot in touched.tolist()], dtype=np.bool_)
    charges = np.random.default_rng(seed).integers(1, 2**60, np.count_nonzero(active))
    if uniform and charges.size:
        charges = np.broadcast_to(charges[:1], charges.shape)
    encoded = EncodedCharges.of(touched=touched, active=active, charges=charges)
    assert encoded.touched().tolist() == touched.tolist()
    for read, written in zip(encoded.decode(), (touched[active], charges, touched[~active]), strict=True):
        assert read.tolist() == written.tolist()
    assert (encoded.active is None) == bool(active.all())
