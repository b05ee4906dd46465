"""A query checked against a public schema: everything that an answer or a preview says of it but its numbers."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from sparing._chain import _canonical as canonical_text
from sparing._testing_conditions import Test, condition_of
from sparing._testing_groups import Group, group_of
from sparing._testing_items import PlanItem, items_of
from sparing._testing_problems import invalid, quoted
from sparing._testing_scale import Asked, Scale, noise_of, scale_of
from sparing._testing_schema import Schema, Table
from sparing._testing_shapes import members_of, number_of, text_of, whole_of
from sparing._testing_values import Columns

__all__ = ["DIMENSION_MAX", "Plan", "plan_of"]

DIMENSION_MAX = 2**20
LABELS_MAX = 10_000
GROUP_BY_MAX = 32
ROWS_MAX = 2**20
_REQUIRED = ("version", "select", "noise")
_OPTIONAL = ("from", "where", "group_by", "per_individual", "rule", "reuse")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compiled query."""

    table: Table
    test: Test | None  # None: every row
    groups: Sequence[Group]
    items: Sequence[PlanItem]
    scale: Scale
    rows_kept: int | None  # of the selected rows of an individual; None: all
    query: Mapping[str, Any]  # the canonical form
    reuse: bool

    @property
    def block(self) -> int:
        """The number of coordinates of one group."""
        return sum(item.size for item in self.items)

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.block * prod(group.size for group in self.groups)

    @property
    def query_hash(self) -> str:
        """The SHA-256 of the canonical form (RFC 8785)."""
        return hashlib.sha256(canonical_text(self.query).encode()).hexdigest()

    def labels(self) -> list[dict[str, str | int | bool]]:
        """One for each coordinate; none above 10,000."""
        if self.dimension > LABELS_MAX:
            return []
        names = [group.name for group in self.groups]
        inner = [label for item in self.items for label in item.labels()]
        outer = product(*([group.label(place) for place in range(group.size)] for group in self.groups))
        return [dict(zip(names, values, strict=True)) | label for values in outer for label in inner]

    def axes(self) -> list[dict[str, Any]]:
        """The same in a few lines."""
        listed: list[dict[str, Any]] = []
        offset = 0
        for item in self.items:
            axis: dict[str, Any] = {"select": item.title, "offset": offset, "size": item.size}
            listed.append(axis if item.values is None else axis | {"values": item.values.axis})
            offset += item.size
        return [*(group.axis for group in self.groups), {"select": listed}]


def plan_of(query: object, schema: Schema, *, capacity: int, budget_units: int) -> Plan:
    """The plan of a query of at most `capacity` individuals. Raises Refused naming the first field that is wrong."""
    asked = members_of(query, "", required=_REQUIRED, optional=_OPTIONAL)
    _check_scalars(asked)
    name = schema.individuals if asked.get("from") is None else text_of(asked["from"], "from")
    if name not in schema.tables:
        raise invalid("from", f"there is no table {quoted(name)}")
    columns = Columns(schema, name)
    test = None if asked.get("where") is None else condition_of(asked["where"], columns)
    groups = _groups(asked.get("group_by", []), columns)
    items = items_of(asked["select"], asked.get("group_by"), columns)
    places = prod(group.size for group in groups)
    if places * sum(item.size for item in items) > DIMENSION_MAX:
        raise invalid("select", f"makes more than {DIMENSION_MAX} coordinates")
    clip, rows = _bounds(asked.get("per_individual"))
    scale = scale_of(
        Asked(
            extents=[item.extent for item in items],
            rows=_rows_max(columns.table, rows),
            groups=places,
            capacity=capacity,
            l2_clip=clip,
            noise=noise_of(asked["noise"], budget_units=budget_units),
        )
    )
    return Plan(
        table=columns.table,
        test=test,
        groups=groups,
        items=items,
        scale=scale,
        rows_kept=rows,
        query=_canonical(asked, name),
        reuse=asked.get("reuse", True),
    )


def _check_scalars(asked: Mapping[str, Any]) -> None:
    if isinstance(asked["version"], bool) or asked["version"] != 1:
        raise invalid("version", "must be 1, the only version there is")
    if asked.get("rule", "skip") != "skip":
        raise invalid("rule", "must be 'skip'")
    if not isinstance(asked.get("reuse", True), bool):
        raise invalid("reuse", "must be a valid boolean")


def _groups(keys: object, columns: Columns) -> list[Group]:
    if not isinstance(keys, list):
        raise invalid("group_by", "must be a list")
    if len(keys) > GROUP_BY_MAX:
        raise invalid("group_by", f"must have at most {GROUP_BY_MAX} entries")
    groups: list[Group] = []
    for place, key in enumerate(keys):
        group = group_of(key, columns, place)
        if group.name in {each.name for each in groups}:
            raise invalid(f"group_by[{place}]", f"names {quoted(group.name)} a second time")
        groups.append(group)
        if prod(each.size for each in groups) > DIMENSION_MAX:
            raise invalid(f"group_by[{place}]", f"makes more than {DIMENSION_MAX} coordinates")
    return groups


def _bounds(node: object) -> tuple[float | None, int | None]:
    if node is None:
        return None, None
    asked = members_of(node, "per_individual", optional=["l2_clip", "rows"])
    clip, rows = asked.get("l2_clip"), asked.get("rows")
    return (
        None if clip is None else number_of(clip, "per_individual.l2_clip", least=1e-30, most=1e30),
        None if rows is None else whole_of(rows, "per_individual.rows", least=1, most=ROWS_MAX),
    )


def _rows_max(table: Table, rows: int | None) -> int:
    if rows is None:
        return table.rows_per_individual if table.is_events else 1
    if not table.is_events:
        raise invalid("per_individual.rows", "is for event tables; an individual has one row in this one")
    return min(rows, table.rows_per_individual)


def _canonical(asked: Mapping[str, Any], table: str) -> dict[str, Any]:
    """The query with its defaults written out, as the service keeps it."""
    bounds = {"l2_clip": None, **(asked.get("per_individual") or {})}
    return {
        "from": table,
        "group_by": [_without_null(key) for key in asked.get("group_by", [])],
        "noise": asked["noise"],
        "per_individual": {name: bound for name, bound in bounds.items() if name == "l2_clip" or bound is not None},
        "rule": "skip",
        "select": [_without_null(item) for item in asked["select"]],
        "version": 1,
        "where": asked.get("where"),
    }


def _without_null(node: Any) -> Any:  # noqa: ANN401 - JSON
    """A sum or a bin without the one of its two members that it does not have."""
    if not isinstance(node, dict):
        return node
    [(kind, body)] = node.items()
    return {kind: {name: value for name, value in body.items() if value is not None}}
