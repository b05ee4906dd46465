"""The steps of one fit in a history: consecutive releases that differ only in the parameters of a gradient."""

from collections.abc import Iterable
from itertools import groupby

from sparing._models import ReleaseRow


def folded(releases: Iterable[ReleaseRow]) -> list[list[ReleaseRow]]:
    """The releases in their order, in groups: consecutive steps of one fit together, each other release by itself."""
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
