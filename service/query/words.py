"""A query in words: one line of English for ledgers, receipts and histories. The words depend on the query alone.

They are made from the canonical form, so that a query is described in the same words everywhere. Items and precisions
have their own words.
"""

from collections.abc import Sequence
from typing import Final

from service.query.items import ITEMS
from service.query.noise_ast import NOISES
from service.query.phrases import Node, condition_words, group_words, listed, numbers_text
from service.query.reduction import REDUCTIONS

_ITEMS: Final = {item.KIND: item for item in ITEMS}
_NOISES: Final = {noise.KIND: noise for noise in NOISES}


def in_words(canonical: Node) -> str:
    """The words for a canonical query as read from JSON, or for the document of a burn.

    An example is `count of visits where area = 1295, by day, σ 18`. Raises LookupError for any other document.
    """
    if "burn" in canonical:
        return f"burn after a restored backup: {canonical['burn']['why']}"
    parts = [
        _selected(canonical["select"], canonical["from"], canonical["where"]),
        *([f"by {listed(map(group_words, canonical['group_by']))}"] if canonical["group_by"] else []),
        *([REDUCTIONS[canonical["reduce"]].words] if "reduce" in canonical else []),
        *_clip(canonical["per_individual"]),
        *(["shortened to what is left"] if canonical.get("rule") == "clip" else []),
        *_noise(canonical["noise"]),
        *([f"{canonical['mechanism'].capitalize()} noise"] if "mechanism" in canonical else []),
    ]
    return ", ".join(parts)


def _selected(items: Sequence[Node], table: str, where: Node | None) -> str:
    described = [(_ITEMS[kind], body) for item in items for kind, body in item.items()]
    words = f"{listed(item.words(body) for item, body in described)} in {table}"
    if len(described) == 1:
        [(item, body)] = described
        words = item.sentence(body, table)
    return words if where is None else f"{words} where {condition_words(where)}"


def _clip(per_individual: Node) -> list[str]:
    clip, rows = per_individual["l2_clip"], per_individual.get("rows")
    return [
        *([] if rows is None else [f"people with more than {rows} {'row' if rows == 1 else 'rows'} as {rows}"]),
        *([] if clip is None else [f"clipped to {numbers_text(clip)} per person"]),
    ]


def _noise(noise: Node) -> list[str]:
    words = next(form.words(noise) for kind, form in _NOISES.items() if kind in noise)
    return [words] if words else []
