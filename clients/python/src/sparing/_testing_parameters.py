"""Model parameters as the fake service reads them: as lists, as arrays in npz, or as hashes that it knows."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._npz import query_of_npz
from sparing._parameters import models_in
from sparing._rooms.fake import (
    HashedParameters,
    Query,
    QueryProblem,
    SentNumbers,
    document_of,
    parse_query,
    query_of,
    with_kept,
)

Arrays = Mapping[str, tuple[tuple[int, ...], bytes]]
"""Arrays by name: the shape and the bytes of the doubles of each."""

_ZIP = b"PK"


class KeptParameters:
    """The parameters in answered queries of one analyst, by dataset and hash."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, tuple[tuple[int, ...], bytes]]] = {}

    def query_in(self, dataset: str, content: bytes) -> Query:
        """The query in a body, with known hashes replaced by their numbers. Raises QueryProblem for a wrong query."""
        if content.startswith(_ZIP):
            return _query_in_npz(content)
        query: Query = with_kept(parse_query(content), self._kept.get(dataset, {}))
        return query

    def keep(self, dataset: str, query: Query) -> None:
        """Keep the numbers of an answered query."""
        kept = self._kept.setdefault(dataset, {})
        for given in query.hashed:
            if isinstance(sent := given.source, SentNumbers):
                kept.setdefault(given.sha256, (sent.shape, sent.numbers))


def json_in(content: bytes) -> Any:  # noqa: ANN401 - whatever a body holds
    """The JSON of a body; for a query in npz, with its parameters as lists. None if there is no JSON."""
    try:
        if not content.startswith(_ZIP):
            return json.loads(content) if content else None
        document, arrays = query_of_npz(content)
        return _filled(document, arrays, lambda numbers: numbers.tolist())
    except ValueError:
        return None


def _query_in_npz(content: bytes) -> Query:
    try:
        sent, arrays = query_of_npz(content)
    except ValueError:
        raise QueryProblem.of("body", "is not an npz that the client makes, which alone the fake reads") from None
    return query_of(_filled(document_of(json.dumps(sent).encode()), arrays, HashedParameters.of))


def _filled(document: object, arrays: Arrays, made: Callable[[NDArray[np.float64]], object]) -> object:
    """The document with its arrays, converted by `made`, in place of their names."""
    for model in models_in(document):
        name = str(model["parameters"]).removeprefix("@")
        if name in arrays:
            shape, numbers = arrays[name]
            model["parameters"] = made(np.frombuffer(numbers, dtype="<f8").reshape(shape))
    return document
