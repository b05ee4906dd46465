"""RFC 8785 (JSON Canonicalization Scheme) at the speed of a JSON writer that knows nothing of it.

orjson sorts keys, writes no blanks and escapes as the scheme does; of what else the scheme says, only the spelling of
numbers is left, and that is asked of a library that knows it. Anything unusual goes to that library as a whole.
"""

from functools import lru_cache
from typing import Any, Final

import orjson
import rfc8785

__all__ = ["canonical_json"]

_AS_IT_IS: Final = frozenset({str, bool, int, type(None)})
_OPTION: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER  # beyond 53 bits there is no canonical form


class _Unusual(Exception):
    """Something that orjson would write in another way."""


def canonical_json(value: object) -> bytes:
    """The canonical form: byte for byte what `rfc8785.dumps` gives, and its errors for what has none."""
    try:
        return orjson.dumps(_spelt(value), option=_OPTION)
    except (_Unusual, orjson.JSONEncodeError):
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # whatever it may be, this knows the error for it


def _spelt(value: object) -> Any:  # noqa: ANN401 - what orjson takes
    """The value with every float spelt out. Raises _Unusual."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is float:
        return _spelt_float(value)
    if kind is dict:
        return _spelt_members(value)  # type: ignore[arg-type]
    if kind is list or kind is tuple:
        return [_spelt(member) for member in value]  # type: ignore[attr-defined]
    raise _Unusual


@lru_cache(maxsize=1024)  # the same few amounts of noise come again and again; 0.0 and -0.0 are spelt alike
def _spelt_float(value: float) -> orjson.Fragment:
    return orjson.Fragment(rfc8785.dumps(value))


def _spelt_members(members: dict[object, object]) -> dict[object, object]:
    """Keys are sorted by UTF-16 in the scheme and by UTF-8 in orjson, which is the same for ASCII."""
    try:
        if not "".join(members).isascii():  # type: ignore[arg-type]  # what is no text is refused here
            raise _Unusual
    except TypeError:
        raise _Unusual from None
    return {key: member if type(member) in _AS_IT_IS else _spelt(member) for key, member in members.items()}
