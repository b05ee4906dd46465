"""Formats are kept: fixed inputs give the bytes and hashes of each format's number.

A change that breaks one of these breaks every ledger there is. A new format gets a new number and vectors of its own.
"""

import hashlib
from dataclasses import replace
from uuid import UUID

from service.ledger.model.amendments import Amendment, amendments_digest
from service.ledger.model.api_keys import Pepper
from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import chain_hash, genesis, private_digest, public_facts
from service.ledger.model.pieces import pieces_digest
from service.ledger.model.rows import Head, WitnessRecord
from service.query.canonical import canonical_json
from service.query.keys import Key
from service.store.witness.combined import decode, encode
from tests.contracts.stores import priced_entry

HEAD = Head(seq=0, hash=bytes(32), epoch=1, fence=1, data_version=3, slots=4, worst_case_units=0, checkpoint_seq=0)
ENTRY = priced_entry(HEAD, {0: 5, 2: 7}, (3,), query_id=UUID(int=9))


def test_a_genesis_is_as_it_was() -> None:
    """It is of a dataset's name and its registration."""
    digest = "8428b675dc90624b6f34ff314f437a9bf404d29a5ef5db5f2858959611faf7b1"
    assert genesis("survey", b'{"rho":"1"}').hex() == digest


def test_a_piece_is_as_it_was() -> None:
    """Header, slots, flags and norms, with zeros up to the next size."""
    content = "010008000000030000000c000000000000000200000003c0000000000000000500000000000000070000000000000001"
    (piece,) = ENTRY.pieces
    assert piece.content == bytes.fromhex(content).ljust(256, b"\0")
    assert piece.digest.hex() == "af0935c5bbd7f58bbc673d5ef66b8147b24995b3e141e5620f3d77ca6cd95f49"
    assert pieces_digest(ENTRY.pieces).hex() == "62c8a36118ba712fc1c5009b446e64ceec196f7a4ca3fab07aa13b0310ac2539"


def test_an_entry_is_as_it_was() -> None:
    """Its public part in canonical JSON, the digest of its private one, that of its answer, and its hash."""
    public = hashlib.sha256(canonical_json(public_facts(ENTRY))).hexdigest()
    assert public == "96d26997f18ea1d50f339aff34ae2c7019ef768fabd9b8317a4c7d26f51da761"
    assert private_digest(ENTRY).hex() == "b5ba0944a3eaabf2665747298e11caca100235ef371c04ab1f690a39bbfc0220"
    assert ENTRY.answer_digest.hex() == "9ab2e0aaefaaa19a44571c32ece60e7927f41dd40a627ae9a51581c3217c533b"
    assert (
        chain_hash(ENTRY).hex()
        == ENTRY.hash.hex()
        == "70e1b24711c9ac49b2d9398d8581e66488f3346159c693abd9ec8fc6134b1b5c"
    )
    settling = replace(ENTRY, kind="burn", settled=b"[1,9,3]", acts=4, acts_hash=bytes(range(32)))
    assert chain_hash(settling).hex() == "866b4402b396e4a49a60406a897b27e8b7c7697d95812c50eb3bee19d39edae1"


def test_an_act_is_as_it_was() -> None:
    """Its number, its place, its kind and its detail, after the act before."""
    act = JournalAct.following(bytes(32), number=1, at_seq=2, act="limit", detail={"slot": 3, "limit_units": "5"})
    assert act.hash.hex() == "82d4f2f02b6bdb22da040cf58bee140699b5842b2a3558a8f80f1cbb544654d0"


def test_an_amendment_is_as_it_was() -> None:
    """Its place, and the digests before and after."""
    amendment = Amendment(erasure=4, seq=2, number=-1, old_digest=bytes(32), new_digest=bytes(range(32)))
    assert amendments_digest([amendment]).hex() == "46b7b0583a8d6c8092068ab9d4d1f098fc0aadf2c86eaf02a7653aa7af445de9"


def test_a_witness_record_is_as_it_was() -> None:
    """128 bytes."""
    record = WitnessRecord(fence=1, seq=2, acts=3, slots=4, worst_case_total_units=5, hash=bytes(range(32)))
    data = encode("survey", record)
    assert (len(data), hashlib.sha256(data).hexdigest()) == (
        128,
        "236af5c636beb1ad9d58d18fef1c4255ef257ce2ee76ef9572f0061f3365834c",
    )
    assert decode("survey", data) == record


def test_keyed_hashes_are_as_they_were() -> None:
    """The hashes are of API keys, tombstones and uploads, and of the keys that seal ledgers and witnesses."""
    pepper = Pepper(bytes(range(32)))
    made = [
        pepper.key_hash("secret"),
        pepper.sign_in_hash("token"),
        pepper.tombstone(1, Key("ann")),
        pepper.upload_digest(1, b"rows"),
        pepper.database_proof(bytes(32)),
        pepper.ledger_key(),
        pepper.witness_key(),
    ]
    assert (
        hashlib.sha256(b"".join(made)).hexdigest() == "d7aec1bcde02f3e9503565fe73a7188d51e6c3f1bcac93f991a2ddc764d60625"
    )
