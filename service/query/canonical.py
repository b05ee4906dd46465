"""The canonical form of a query: the bytes that the ledger keeps, and by which an identical query is recognised.

RFC 8785 (JSON Canonicalization Scheme) fixes the order of keys, the spelling of numbers and the escapes. Defaults are
written out. The order of `select`, of `group_by` and within `and`, `or` and `in` stays as asked: the first two are the
order of the answer's coordinates, and for the others the form does not set out to prove two conditions equivalent.
`reuse` is left out: it says whether a stored answer will do, not what is asked.
"""

import hashlib

from service.query.canonical_json import canonical_json
from service.query.language import Query
from service.query.schema import Schema

__all__ = ["canonical_bytes", "query_hash", "request_hash", "table_of"]


def canonical_bytes(query: Query, *, table: str | None = None) -> bytes:
    """The canonical form, itself a query in the language; `table` is the one that it means if it names none."""
    document = query.model_dump(by_alias=True, exclude={"reuse"})
    if document["from"] is None:
        document["from"] = table
    if document["per_individual"] is None:
        document["per_individual"] = {"l2_clip": None}
    return canonical_json(document)


def table_of(query: Query, schema: Schema) -> str:
    """The name of the table that a query is about: that of the individuals if it names none."""
    return schema.individuals_name if query.from_ is None else query.from_


def query_hash(canonical: bytes) -> str:
    """The SHA-256 of a canonical form in hexadecimal."""
    return hashlib.sha256(canonical).hexdigest()


def request_hash(canonical: bytes, *, reuse: bool) -> bytes:
    """By what two requests under one key are told apart: the canonical form, and whether a stored answer will do."""
    return hashlib.sha256(b"%d:%s" % (reuse, canonical)).digest()
