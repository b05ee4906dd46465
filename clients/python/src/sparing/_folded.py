"""The steps of one fit in a history: releases in a row that differ in the parameters of a gradient alone."""

from collections.abc import Iterable
from itertools import groupby

from sparing._models import ReleaseRow


def folded(releases: Iterable[ReleaseRow]) -> list[list[ReleaseRow]]:
    """The releases in their order, grouped: consecutive ones of one fit together, and each other one by itself."""
    numbered = enumerate(releases)
    groups = groupby(numbered, key=lambda each: _model_of(each[1]) or each[0])
    return [[row for _, row in group] for _, group in groups]


def _model_of(release: ReleaseRow) -> str | None:
    """The query of a step without its parameters, and the dataset, as one text; None for any other query."""
    match release.query.get("select"):
        case [{"gradient": {**gradient}}, *_]:
            pass
        case _:
            return None
    query = {**release.query, "select": [{"gradient": {**gradient, "parameters": None}}]}
    return f"{release.dataset} {query}"
