"""Answers and queries in binary: the arrays of an npz file, read without numpy and without unpickling anything."""

import ast
import io
import json
import sys
import zipfile
import zlib
from array import array
from typing import Any, Final

NPZ: Final = "application/x-npz"
_NOT_NPZ: Final = (
    *(KeyError, TypeError, ValueError, SyntaxError, RecursionError, NotImplementedError, RuntimeError, OSError),
    *(EOFError, zipfile.BadZipFile, zlib.error),
)
_MAGIC: Final = b"\x93NUMPY\x01\x00"


def answer_of_npz(content: bytes) -> dict[str, object]:
    """The members of an answer as its JSON has them, without labels.

    Raises ValueError for a content that is no such file, or whose arrays are not those of an answer.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            facts, numbers = (archive.read(f"{name}.npy") for name in ("answer", "values"))
        document = json.loads(_text(facts))
        return {**document, "values": _doubles(numbers), "labels": []}
    except _NOT_NPZ as error:
        raise ValueError(f"is not an answer in npz: {error}") from error


def query_of_npz(content: bytes) -> tuple[dict[str, Any], dict[str, tuple[tuple[int, ...], bytes]]]:
    """The document of a query that `sparing._parameters` wrote, and the shape and the doubles of each array by name.

    Raises ValueError for a content that is no such file.
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


def _doubles(content: bytes) -> list[float]:
    kind, shape, data = _array(content)
    if kind != "<f8" or shape != (len(data) // 8,) or len(data) % 8 != 0:
        raise ValueError(f"the values are an array of kind {kind} and shape {shape}")
    numbers = array("d", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _text(content: bytes) -> str:
    kind, shape, data = _array(content)
    if not kind.startswith("<U") or shape != ():
        raise ValueError(f"the answer is an array of kind {kind} and shape {shape}")
    return data.decode("utf-32-le").rstrip("\0")


def _array(content: bytes) -> tuple[str, tuple[int, ...], bytes]:
    """The kind, the shape and the bytes of an array."""
    begin = len(_MAGIC) + 2
    end = begin + int.from_bytes(content[len(_MAGIC) : begin], "little")
    if not content.startswith(_MAGIC) or end > len(content):
        raise ValueError("an array is not of version 1.0")
    header = ast.literal_eval(content[begin:end].decode("latin-1"))
    return str(header["descr"]), tuple(header["shape"]), content[end:]
