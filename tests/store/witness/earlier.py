"""Witness records of earlier versions in Redis, which tell in the clear where a dataset stands."""

from service.store.witness.record_format import encode
from service.workflows.model.api_keys import Pepper
from service.workflows.model.rows import WitnessRecord


def clear_value(dataset: str, record: WitnessRecord, pepper: Pepper) -> bytes:
    """The position written out, the record, and a keyed hash of both."""
    body = "".join(f"{number:020d}" for number in record.position).encode() + encode(dataset, record)
    return body + pepper.clear_witness_mac(body)
