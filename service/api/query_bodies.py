"""Queries in binary: an npz of the query as JSON, and of the long lists in it as arrays.

The member `query` is the query's text. In place of a list of `starts`, `indices` or `values` it has `"@name"`, and the
member `name` is that list. The query that comes out is the one that the same lists in JSON are, with the same canonical
form and hash.

Every member is stored as it is, so that none is larger than the body, and an array is read only if its header is in the
form in which numpy writes it and describes exactly the bytes that follow. Nothing is unpickled.
"""

import io
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.query.expressions_ast import INTEGER_MAX
from service.query.language import Query
from service.query.parse import BODY_BYTES_MAX, document_of, query_of
from service.query.problems import QueryProblem, quoted

__all__ = ["query_of_npz"]

_QUERY: Final = "query"
_LISTS: Final = frozenset({"starts", "indices", "values"})
_MEMBERS_MAX: Final = 256
_SUFFIX: Final = ".npy"
_PREFIX_BYTES: Final = 10  # magic, version and the length of the header
_HEADER: Final = re.compile(
    rb"\x93NUMPY\x01\x00.{2}"
    rb"\{'descr': '([<|](?:b1|[iu][1248]|f[248]|U[1-9][0-9]{0,5}))', 'fortran_order': (?:False|True), "
    rb"'shape': \((?:([0-9]{1,7}),)?\), \} *\n",
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
"""The errors of a library that reads a zip which is none."""


def query_of_npz(body: bytes) -> Query:
    """The query in such a body. Raises QueryProblem."""
    arrays = dict(_members(body))
    text = arrays.pop(_QUERY, None)
    if text is None or text.ndim != 0 or text.dtype.kind != "U":
        raise QueryProblem.of(f"body.{_QUERY}", "must be the query as text, an array without a dimension")
    document = document_of(str(text[()]).encode(errors="surrogatepass"))
    used: set[str] = set()
    _put_lists(document, arrays, used)
    if unused := sorted(arrays.keys() - used):
        raise QueryProblem.of(_field(unused[0]), "is not mentioned in the query")
    return query_of(document)


def _members(body: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays by name. Raises QueryProblem naming the member."""
    if len(body) > BODY_BYTES_MAX:
        raise QueryProblem.of("body", f"is larger than {BODY_BYTES_MAX} bytes")
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


def _check_listed(listed: list[zipfile.ZipInfo], body_bytes: int) -> None:
    """Refuse members that are packed, encrypted, repeated, or together larger than the body that they are in."""
    if len(listed) > _MEMBERS_MAX or len({each.filename for each in listed}) < len(listed):
        raise QueryProblem.of("body", f"must have at most {_MEMBERS_MAX} members, each once")
    for each in listed:
        field = _field(each.filename.removesuffix(_SUFFIX))
        if not each.filename.endswith(_SUFFIX):
            raise QueryProblem.of(field, "must be an array: an npy")
        if each.compress_type != zipfile.ZIP_STORED or each.flag_bits & 1:
            raise QueryProblem.of(field, "must be stored as it is: numpy.savez does that, savez_compressed does not")
    if sum(each.file_size for each in listed) > body_bytes:
        raise QueryProblem.of("body", "is not an npz")


def _array(content: bytes, field: str) -> NDArray[Any]:
    """The array of an npy of no or one dimension. Raises QueryProblem."""
    header = _HEADER.match(content)
    if header is None or header.end() != _PREFIX_BYTES + int.from_bytes(content[8:_PREFIX_BYTES], "little"):
        raise QueryProblem.of(field, "must be an npy of version 1.0: a list of numbers, texts or booleans, or a text")
    dtype, length = np.dtype(header[1].decode()), header[2]
    data = content[header.end() :]
    if len(data) != dtype.itemsize * (1 if length is None else int(length)):
        raise QueryProblem.of(field, "is not as long as its header says")
    if dtype.kind == "U" and np.any(np.frombuffer(data, dtype="<u4") > _CHARACTER_MAX):
        raise QueryProblem.of(field, "has a text that is not Unicode")
    array: NDArray[Any] = np.frombuffer(data, dtype=dtype)
    return array.reshape(()) if length is None else array


def _put_lists(node: object, arrays: Mapping[str, NDArray[Any]], used: set[str]) -> None:
    """Put the lists into their places. Raises QueryProblem naming the member."""
    if isinstance(node, list):
        for each in node:
            _put_lists(each, arrays, used)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in _LISTS and isinstance(value, str) and value.startswith("@"):
                node[key] = _listed(value[1:], arrays)
                used.add(value[1:])
            else:
                _put_lists(value, arrays, used)


def _listed(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[Any]:
    """The list of a member. Raises QueryProblem."""
    array = arrays.get(name)
    if array is None or array.ndim != 1:
        raise QueryProblem.of(_field(name), "must be an array of one dimension, as the query mentions it")
    if array.dtype.kind in "iu" and array.size > 0 and not -INTEGER_MAX <= array.min() <= array.max() <= INTEGER_MAX:
        raise QueryProblem.of(_field(name), "has an integer beyond 2^53 - 1")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise QueryProblem.of(_field(name), "has a number that is not finite")
    listed: list[Any] = array.tolist()
    return listed


def _field(name: str) -> str:
    return f"body.{quoted(name)[1:-1]}"
