"""Values of Python, numpy, pandas, polars and pyarrow written as JSON, and keys of individuals as text."""

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping

from sparing._expressions import iso, plain


def json_of(body: object) -> bytes:
    """The bytes of a JSON document, made once, so that every try sends the same bytes.

    Arrays and columns become lists, decimals numbers, dates and times ISO 8601 text, and NA and NaT null. Raises
    ValueError for NaN and infinity, and TypeError for any other value that JSON cannot hold.
    """
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_form).encode()


def key_text(individual: object) -> str:
    """The key of an individual as text. Raises TypeError unless it is text or an integer."""
    key = plain(individual)
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise TypeError(f"an individual's key is text or an integer, not {individual!r}")
    return str(key)


def record_of(values: Mapping[str, object]) -> dict[str, object]:
    """The values of a record with NaN replaced by NULL, as in a data frame."""
    found = {name: plain(value) for name, value in values.items()}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in found.items()}


def _form(value: object) -> object:
    """The form in JSON of a value that `json` does not write by itself. Raises TypeError if there is none."""
    own = plain(value)
    if type(own).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(own, dt.date):
        return iso(own)
    if isinstance(own, Mapping):
        return dict(own)
    if isinstance(own, Iterable) and not isinstance(own, bytes | set | frozenset):
        return list(own)
    own = own.as_py() if hasattr(own, "as_py") else own  # a scalar of pyarrow
    if own is value:
        raise TypeError(f"a {type(value).__name__} has no form in JSON: {value!r}")
    return own
