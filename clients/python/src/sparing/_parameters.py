"""Model parameters that are too many for JSON: sent as arrays in npz, or as hashes that the service already knows.

numpy is not needed. Only the hashes of answered parameters are remembered, by dataset, and not the numbers.
"""

import hashlib
import io
import sys
import zipfile
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import isfinite
from typing import Any, Final

from sparing._errors import InvalidRequestError
from sparing._wire import json_of

IN_JSON_MAX: Final = 1000
"""The most parameters that are sent in JSON; more are sent as an array."""
_KNOWN_MAX: Final = 4096
_FIELD: Final = ".parameters"
_MIXED_MAX: Final = 32  # a longer list is of literals alone, or has none
_UNKNOWN: Final = "send the numbers"
_MAGIC: Final = b"\x93NUMPY\x01\x00"
_ALIGNED: Final = 64


@dataclass(frozen=True)
class Numbers:
    """The parameters of one model: their shape, and little-endian doubles, row by row."""

    shape: tuple[int, ...]
    doubles: bytes

    @cached_property
    def sha256(self) -> str:
        """The hash by which the service identifies these numbers."""
        return hashlib.sha256(self.doubles).hexdigest()


@dataclass(frozen=True)
class ManyParameters:
    """The document of a query, and its arrays of parameters by the `id` of each model in the document."""

    document: Mapping[str, Any]
    arrays: Mapping[int, Numbers]

    @property
    def hashes(self) -> list[str]:
        """The hashes of all arrays."""
        return [each.sha256 for each in self.arrays.values()]

    @property
    def by_hash(self) -> dict[str, Any]:
        """The document with hashes in the place of the numbers."""
        return self._with({place: {"sha256": it.sha256, "shape": [*it.shape]} for place, it in self.arrays.items()})

    @property
    def npz(self) -> bytes:
        """The document and the numbers as one npz file; equal arrays are stored once."""
        names = {each: f"parameters{place or ''}" for place, each in enumerate(dict.fromkeys(self.arrays.values()))}
        text = json_of(self._with({place: f"@{names[each]}" for place, each in self.arrays.items()})).decode()
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            members = {"query": _npy(f"<U{len(text)}", (), text.encode("utf-32-le"))}
            members |= {name: _npy("<f8", each.shape, each.doubles) for each, name in names.items()}
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
        return file.getvalue()

    def _with(self, parameters: Mapping[int, object]) -> dict[str, Any]:
        replaced: dict[str, Any] = _replaced(self.document, parameters)
        return replaced


def many_in(document: Mapping[str, Any]) -> ManyParameters | None:
    """The arrays of those models in a query that have more than 1,000 parameters; None if no model has so many."""
    found = {id(model): _packed(model["parameters"]) for model in models_in(document)}
    arrays = {place: numbers for place, numbers in found.items() if numbers is not None}
    return ManyParameters(document, arrays) if arrays else None


def models_in(part: object) -> Iterator[dict[str, Any]]:
    """The gradients and predictions in a document; long lists of literals are skipped."""
    if isinstance(part, dict):
        if "features" in part and "parameters" in part:
            yield part
        for key, member in part.items():
            yield from models_in(member if key != "parameters" else None)
    elif isinstance(part, list) and (len(part) <= _MIXED_MAX or isinstance(part[0], dict)):
        for member in part:
            yield from models_in(member)


def _replaced(part: Any, parameters: Mapping[int, object]) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """A copy of a part of a document with other parameters for some models."""
    if isinstance(part, dict):
        own = {"parameters": parameters[id(part)]} if id(part) in parameters else {}
        return {key: own.get(key) or _replaced(member, parameters) for key, member in part.items()}
    return [_replaced(member, parameters) for member in part] if isinstance(part, list) else part


def _packed(given: object) -> Numbers | None:
    """More than 1,000 parameters as an array; None for fewer, or for lists that are no rectangle of numbers."""
    if not isinstance(given, list) or not given:
        return None
    rows: Sequence[Any] = given if isinstance(given[0], list) else [given]
    if not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
        return None
    numbers = list(chain.from_iterable(rows))
    if len(numbers) <= IN_JSON_MAX or not all(type(each) in {int, float} and isfinite(each) for each in numbers):
        return None
    shape = (len(given),) if rows[0] is given else (len(rows), len(rows[0]))
    return Numbers(shape, _little_endian(array("d", numbers)).tobytes())


def _little_endian(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _npy(kind: str, shape: tuple[int, ...], data: bytes) -> bytes:
    """The bytes of an array as numpy writes them in version 1.0 of its format."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    header += b" " * (-(len(_MAGIC) + 2 + len(header) + 1) % _ALIGNED) + b"\n"
    return _MAGIC + len(header).to_bytes(2, "little") + header + data


class KnownHashes(OrderedDict[tuple[str, str], None]):
    """The hashes that were answered lately, by dataset. A service that has forgotten one gets its numbers again."""

    def add(self, place: tuple[str, str]) -> None:
        """Remember one, and forget the oldest of too many."""
        self[place] = None
        if len(self) > _KNOWN_MAX:
            self.popitem(last=False)


KNOWN: Final = KnownHashes()
"""The hashes of this process, for all API keys. If another analyst sent one, the service asks for the numbers."""


def is_unknown(refusal: InvalidRequestError) -> bool:
    """Tell whether the service asks for the numbers of a hash."""
    return any(each.field.endswith(_FIELD) and _UNKNOWN in each.message for each in refusal.errors)
