"""Answers and queries in binary: the arrays of an npz file, read without numpy and without unpickling anything."""

import io
import json
import re
import sys
import zipfile
import zlib
from array import array
from typing import Any, Final

from sparing._constants import DIMENSION_MAX
from sparing._strict_json import json_document

NPZ: Final = "application/x-npz"
_NOT_NPZ: Final = (
    *(KeyError, TypeError, ValueError, SyntaxError, RecursionError, NotImplementedError, RuntimeError, OSError),
    *(EOFError, zipfile.BadZipFile, zlib.error),
)
_MAGIC: Final = b"\x93NUMPY\x01\x00"
_HEADER: Final = re.compile(
    rb"\{'descr': '([<|=a-zA-Z0-9]{1,20})', 'fortran_order': False, "
    rb"'shape': \((|\d{1,15},|\d{1,15}(?:, \d{1,15}){1,7})\), \} *\n"
)
"""The header of an array in row-major order, as numpy writes it."""
_FACTS_BYTES_MAX: Final = 16 * 2**20  # of everything but the numbers, four bytes a character
_NUMBERS_BYTES_MAX: Final = 8 * DIMENSION_MAX + 2**16
_END_BYTES: Final = 22  # of a zip file's end without a comment
_LIST_BYTES_MAX: Final = 4096  # of its list of members, of which there are two


def answer_of_npz(content: bytes) -> dict[str, Any]:
    """The fields of an answer as in its JSON, but without labels, and with the values as an array of doubles.

    An array that is too long for an answer is not unpacked.

    Raises ValueError if the content is no npz file, or its arrays are not those of an answer.
    """
    try:
        with _archive(content) as archive:
            document = json_document(_text(_unpacked(archive, "answer", _FACTS_BYTES_MAX)).encode())
            numbers = _unpacked(archive, "values", _NUMBERS_BYTES_MAX)
        if not isinstance(document, dict):
            raise ValueError("the answer is no object")  # noqa: TRY004 - one kind of error
        return {**document, "values": _doubles(numbers), "labels": []}
    except _NOT_NPZ as error:
        raise ValueError(f"is not an answer in npz: {error}") from error


def _archive(content: bytes) -> zipfile.ZipFile:
    """The zip file. Raises ValueError if its list of arrays, which is read first, is too long or misplaced."""
    end = content[-_END_BYTES:]
    is_plain = end.startswith(b"PK\5\6") and not content[-_END_BYTES - 20 : -_END_BYTES].startswith(b"PK\6\7")
    if not is_plain or end[20:] != b"\0\0" or int.from_bytes(end[12:16], "little") > _LIST_BYTES_MAX:
        raise ValueError("the end of the file does not list a few arrays")
    return zipfile.ZipFile(io.BytesIO(content))


def _unpacked(archive: zipfile.ZipFile, name: str, bytes_max: int) -> bytes:
    """The bytes of an array. Raises ValueError if it is longer than `bytes_max`, or not as long as it states."""
    member = archive.getinfo(f"{name}.npy")
    if member.file_size > bytes_max:
        raise ValueError(f"{name} has {member.file_size:,} bytes, and an answer has no more than {bytes_max:,}")
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError(f"{name} is packed in an unknown way")
    with archive.open(member) as file:
        found = file.read(member.file_size)
    if len(found) != member.file_size:
        raise ValueError(f"{name} is cut short")
    return found


def query_of_npz(content: bytes) -> tuple[dict[str, Any], dict[str, tuple[tuple[int, ...], bytes]]]:
    """The document of a query written by `sparing._parameters`, and the shape and the doubles of each array by name.

    Raises ValueError for any other content.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {each.removesuffix(".npy"): archive.read(each) for each in archive.namelist()}
        document = json.loads(_text(members.pop("query")))
        arrays = {name: _array(numbers) for name, numbers in members.items()}
        if wrong := [kind for kind, _, _ in arrays.values() if kind != "<f8"]:
            raise ValueError(f"parameters are an array of kind {wrong[0]}")
        return document, {name: (shape, data) for name, (_, shape, data) in arrays.items()}
    except _NOT_NPZ as error:
        raise ValueError(f"is not a query in npz: {error}") from error


def _doubles(content: bytes) -> "array[float]":
    kind, shape, data = _array(content)
    if kind != "<f8" or shape != (len(data) // 8,) or len(data) % 8 != 0:
        raise ValueError(f"the values are an array of kind {kind} and shape {shape}")
    numbers = array("d", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _text(content: bytes) -> str:
    kind, shape, data = _array(content)
    if not kind.startswith("<U") or shape != ():
        raise ValueError(f"the answer is an array of kind {kind} and shape {shape}")
    return data.decode("utf-32-le").rstrip("\0")


def _array(content: bytes) -> tuple[str, tuple[int, ...], bytes]:
    """The kind, the shape and the bytes of an array in the format of numpy."""
    begin = len(_MAGIC) + 2
    end = begin + int.from_bytes(content[len(_MAGIC) : begin], "little")
    if not content.startswith(_MAGIC) or end > len(content):
        raise ValueError("an array is not of version 1.0")
    header = _HEADER.fullmatch(content[begin:end])
    if header is None:
        raise ValueError("an array has an unknown header")
    kind, shape = (part.decode() for part in header.groups())
    return kind, tuple(int(size) for size in shape.split(",") if size.strip()), content[end:]
