"""The canonical form of a query: the bytes that the ledger keeps, and by which an identical query is recognised.

RFC 8785 (JSON Canonicalization Scheme) fixes the order of keys, the spelling of numbers and the escapes. Defaults are
written out. The order of `select`, of `group_by` and within `and`, `or` and `in` stays as asked. The order of the first
two is that of the answer's coordinates. As for the others, the form does not try to prove two conditions equivalent.
`reuse` is left out, since it says only whether a stored answer will do. The mechanism `gaussian` is left out too.

orjson writes the form, because it is fast: it sorts keys, leaves no blanks and escapes as the scheme does. Floats, and
any document with something unusual in it, are left to the library that implements the scheme.
"""

import hashlib
from functools import lru_cache
from typing import Any, Final

import orjson
import rfc8785

from service.query.language import Query

_AS_IT_IS: Final = frozenset({str, bool, int, type(None)})
_OPTION: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER  # beyond 53 bits there is no canonical form


def canonical_bytes(query: Query, *, table: str | None = None) -> bytes:
    """The canonical form, itself a query in the language. `table` is the one meant where the query names none."""
    document = query.model_dump(by_alias=True, exclude={"reuse"})
    if document["mechanism"] == "gaussian":
        del document["mechanism"]
    if document["from"] is None:
        document["from"] = table
    if document["per_individual"] is None:
        document["per_individual"] = {"l2_clip": None}
    return canonical_json(document)


def request_hash(canonical: bytes, *, reuse: bool) -> bytes:
    """The hash of the canonical form and of `reuse`, which distinguishes two requests under one idempotency key."""
    return hashlib.sha256(b"%d:%s" % (reuse, canonical)).digest()


def canonical_json(value: object) -> bytes:
    """The canonical form, byte for byte as `rfc8785.dumps` gives it. Raises its errors for a value that has none."""
    try:
        return orjson.dumps(_spelt(value), option=_OPTION)
    except (_Unusual, TypeError):  # a TypeError is orjson's own, or of a key that is no text
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # whatever it may be, this knows the error for it


class _Unusual(Exception):
    """A value that orjson would write in another way than the scheme."""


def _spelt(value: object) -> object:
    """A copy of the value with every float spelt out. Raises _Unusual."""
    whole: list[Any] = [value]
    copies: list[Any] = [whole]
    for copy in copies:  # each object and list found in a copy is copied in its place, and joins the end of the line
        for place, member in copy.items() if type(copy) is dict else enumerate(copy):
            kind = type(member)
            if kind in _AS_IT_IS:
                continue
            if kind is float:
                copy[place] = _spelt_float(member)
                continue
            if kind is dict:
                if not all(map(str.isascii, member)):  # of others the scheme sorts UTF-16, and orjson UTF-8
                    raise _Unusual
                copy[place] = dict(member)
            elif kind is list or kind is tuple:
                copy[place] = list(member)
            else:
                raise _Unusual
            copies.append(copy[place])
    return whole[0]


@lru_cache(maxsize=1024)  # the same few amounts of noise come again and again; 0.0 and -0.0 are spelt alike
def _spelt_float(value: float) -> orjson.Fragment:
    return orjson.Fragment(rfc8785.dumps(value))
