"""Records in Redis as earlier versions left them: authenticated, and readable to every reader of Redis.

They are still evidence of what was released. The next writer seals the farther of the two and deletes this one.
"""

from collections.abc import Callable
from hmac import compare_digest
from typing import Final

from service.store.witness.record_format import RECORD_BYTES, decode
from service.workflows.model.rows import WitnessRecord

_POSITION_BYTES: Final = 60  # fence, sequence and acts, written out for a script that compared them


def clear_name(dataset: str) -> str:
    """Under what it lies."""
    return f"sparing:witness:{dataset}"


def clear_record(dataset: str, held: object, mac: Callable[[bytes], bytes]) -> WitnessRecord | None:
    """The record in a value that may be anything; None where it was not made with this pepper, for this dataset."""
    if not isinstance(held, bytes):
        return None
    end = _POSITION_BYTES + RECORD_BYTES
    if not compare_digest(held[end:], mac(held[:end])):
        return None
    return decode(dataset, held[_POSITION_BYTES:end])
