"""Queries in binary: an npz of the query as JSON, and of the long lists in it as arrays.

The member `query` is the query's text. In place of a list of `starts`, `indices` or `values` it has `"@name"`, and the
member `name` is that list. The query that results is the same as with these lists in JSON, with the same canonical form
and hash. The `parameters` of gradients and predictions may also be given as arrays, in one dimension or two. They may
be larger than everything else together, and the canonical form has their hash in their place.

Every member is stored uncompressed, so that none is larger than the body. An array is read only if its header is in the
form in which numpy writes it, and describes exactly the bytes that follow. Nothing is unpickled.
"""

import io
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.query.json_text import document_of
from service.query.language import Query
from service.query.literals_ast import INTEGER_MAX
from service.query.parameters_ast import PARAMETERS_MAX, HashedParameters
from service.query.parse import BODY_BYTES_MAX, query_of
from service.query.problems import QueryProblem, quoted

_QUERY: Final = "query"
_PARAMETERS: Final = "parameters"
_ARRAYS: Final = frozenset({"starts", "indices", "values", _PARAMETERS})
PARAMETERS_BYTES_MAX: Final = 8 * 2**20
NPZ_BYTES_MAX: Final = BODY_BYTES_MAX + PARAMETERS_BYTES_MAX
_MEMBERS_MAX: Final = 256
_TOO_MANY: Final = f"must have at most {_MEMBERS_MAX} members, each once"
_DIRECTORY_BYTES_MAX: Final = 2**16
_END: Final = struct.Struct("<4s6xHL4xH")
"""The record at the end of a zip.

It holds a signature, the number of members, and the bytes of their directory and of a comment.
"""
_END_SIGNATURE: Final = b"PK\x05\x06"
_LONG_END: Final = b"PK\x06\x07"
_LONG_END_BYTES: Final = 20
_TEXT_BYTES_MAX: Final = 4 * BODY_BYTES_MAX  # numpy has four for each character
_SUFFIX: Final = ".npy"
_PREFIX_BYTES: Final = 10  # magic, version and the length of the header
_HEADER: Final = re.compile(
    rb"\x93NUMPY\x01\x00.{2}"
    rb"\{'descr': '([<|](?:b1|[iu][1248]|f[248]|U[1-9][0-9]{0,5}))', 'fortran_order': (?:False|True), "
    rb"'shape': \((?:([0-9]{1,7}),(?: ([0-9]{1,7}))?)?\), \} *\n",
    re.DOTALL,
)
_CHARACTER_MAX: Final = 0x10FFFF
_NOT_NPZ: Final = (
    zipfile.BadZipFile,
    EOFError,
    IndexError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    struct.error,
    ValueError,
)
"""The errors that a library raises when it reads something that is no zip."""


def query_of_npz(body: bytes) -> Query:
    """The query in an npz. Raises QueryProblem."""
    arrays = dict(_members(body))
    text = arrays.pop(_QUERY, None)
    if text is None or text.ndim != 0 or text.dtype.kind != "U":
        raise QueryProblem.of(f"body.{_QUERY}", "must be the query as text, an array without a dimension")
    if text.dtype.itemsize > _TEXT_BYTES_MAX:
        raise QueryProblem.of("body", f"is larger than {BODY_BYTES_MAX} bytes")
    document = document_of(str(text[()]).encode(errors="surrogatepass"))
    places = list(_places(document))
    used = {name for _, _, name in places}
    if unused := sorted(arrays.keys() - used):
        raise QueryProblem.of(_field(unused[0]), "is not mentioned in the query")
    _check_sizes(len(body), sum(arrays[name].nbytes for name in _parameters(places) & arrays.keys()))
    made: dict[tuple[bool, str], object] = {}  # each array once, however often it is mentioned
    for node, key, name in places:
        is_hashed = key == _PARAMETERS
        if (is_hashed, name) not in made:
            made[is_hashed, name] = _hashed(name, arrays) if is_hashed else _listed(name, arrays)
        node[key] = made[is_hashed, name]
    return query_of(document)


def _members(body: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays by name. Raises QueryProblem naming the member."""
    if len(body) > NPZ_BYTES_MAX:
        raise QueryProblem.of("body", f"is larger than {NPZ_BYTES_MAX} bytes")
    _check_directory(body)
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            listed = archive.infolist()
            _check_listed(listed, len(body))
            contents = {each.filename.removesuffix(_SUFFIX): archive.read(each) for each in listed}
    except QueryProblem:
        raise
    except _NOT_NPZ:
        raise QueryProblem.of("body", "is not an npz") from None
    for name, content in contents.items():
        yield name, _array(content, _field(name))


def _check_directory(body: bytes) -> None:
    """Refuse a long directory by the record that ends a zip, since a library reads as much of it as the record says.

    The record must stand at the very end, without a comment. A zip with a record for directories beyond 32 bits, which
    would stand before it, counts as no npz.
    """
    signature, entries, directory_bytes, comment_bytes = _END.unpack(body[-_END.size :].rjust(_END.size, b"\0"))
    has_long_end = body[-_END.size - _LONG_END_BYTES :].startswith(_LONG_END)
    if signature != _END_SIGNATURE or comment_bytes > 0 or has_long_end:
        raise QueryProblem.of("body", "is not an npz")
    if entries > _MEMBERS_MAX or directory_bytes > _DIRECTORY_BYTES_MAX:
        raise QueryProblem.of("body", _TOO_MANY)


def _check_listed(listed: list[zipfile.ZipInfo], body_bytes: int) -> None:
    """Refuse members that are compressed, encrypted, repeated, or together larger than the body."""
    if len(listed) > _MEMBERS_MAX or len({each.filename for each in listed}) < len(listed):
        raise QueryProblem.of("body", _TOO_MANY)
    for each in listed:
        field = _field(each.filename.removesuffix(_SUFFIX))
        if not each.filename.endswith(_SUFFIX):
            raise QueryProblem.of(field, "must be an array: an npy")
        if each.compress_type != zipfile.ZIP_STORED or each.flag_bits & 1:
            raise QueryProblem.of(field, "must be stored as it is: numpy.savez does that, savez_compressed does not")
    if sum(each.file_size for each in listed) > body_bytes:
        raise QueryProblem.of("body", "is not an npz")


def _array(content: bytes, field: str) -> NDArray[Any]:
    """The array of an npy of at most two dimensions. Raises QueryProblem."""
    header = _HEADER.match(content)
    if header is None or header.end() != _PREFIX_BYTES + int.from_bytes(content[8:_PREFIX_BYTES], "little"):
        raise QueryProblem.of(field, "must be an npy of version 1.0: a list of numbers, texts or booleans, or a text")
    dtype, shape = np.dtype(header[1].decode()), tuple(int(length) for length in header.groups()[1:] if length)
    data = content[header.end() :]
    if len(data) != dtype.itemsize * prod(shape):
        raise QueryProblem.of(field, "is not as long as its header says")
    if dtype.kind == "U" and np.any(np.frombuffer(data, dtype="<u4") > _CHARACTER_MAX):
        raise QueryProblem.of(field, "has a text that is not Unicode")
    array: NDArray[Any] = np.frombuffer(data, dtype=dtype)
    return array.reshape(shape, order="F" if b"'fortran_order': True" in header[0] else "C")


_Place = tuple[dict[str, Any], str, str]
"""(object, key in it at which a member is named, name of the member)."""


def _places(node: object) -> Iterator[_Place]:
    """The places in a document at which an array is named."""
    if isinstance(node, list):
        for each in node:
            yield from _places(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in _ARRAYS and isinstance(value, str) and value.startswith("@"):
                yield node, key, value[1:]
            else:
                yield from _places(value)


def _parameters(places: Sequence[_Place]) -> set[str]:
    """The names that are used for parameters, and for nothing else."""
    others = {name for _, key, name in places if key != _PARAMETERS}
    return {name for _, key, name in places if key == _PARAMETERS} - others


def _check_sizes(body_bytes: int, parameters_bytes: int) -> None:
    """Refuse too many parameters, or too many other bytes, before any array is read."""
    if parameters_bytes > PARAMETERS_BYTES_MAX or body_bytes - parameters_bytes > BODY_BYTES_MAX:
        parts = f"{BODY_BYTES_MAX} bytes, beside {PARAMETERS_BYTES_MAX} bytes of parameters"
        raise QueryProblem.of("body", f"is larger than {parts}")


def _hashed(name: str, arrays: Mapping[str, NDArray[Any]]) -> HashedParameters:
    """The parameters that a member holds. Raises QueryProblem."""
    array = arrays.get(name)
    if array is None or array.ndim == 0 or array.size == 0 or array.dtype not in {np.dtype("<f8"), np.dtype("<f4")}:
        raise QueryProblem.of(_field(name), "must be an array of doubles or floats in one dimension or two")
    if not np.isfinite(array).all():
        raise QueryProblem.of(_field(name), "has a number that is not finite")
    if array.size > PARAMETERS_MAX:
        raise QueryProblem.of(_field(name), f"has more than {PARAMETERS_MAX} numbers")
    return HashedParameters.of(array)


def _listed(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[Any]:
    """The list that a member holds. Raises QueryProblem."""
    array = arrays.get(name)
    if array is None or array.ndim != 1:
        raise QueryProblem.of(_field(name), "must be an array of one dimension, as the query mentions it")
    if array.dtype.kind in "iu" and array.size > 0 and not -INTEGER_MAX <= array.min() <= array.max() <= INTEGER_MAX:
        raise QueryProblem.of(_field(name), "has an integer beyond 2^53 - 1")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise QueryProblem.of(_field(name), "has a number that is not finite")
    listed: list[Any] = array.tolist()
    if array.dtype.kind == "U" and any("\0" in each for each in listed):
        raise QueryProblem.of(_field(name), "has the character U+0000")
    return listed


def _field(name: str) -> str:
    return f"body.{quoted(name)[1:-1]}"
