"""Output for people: aligned tables, and numbers with the digits that their error bars leave significant."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sparing import Allowance, Answer, Dataset, DatasetRow, Preview, ReleaseRow
from sparing._coordinates import PerItem
from sparing._folded import folded
from sparing._printable import printable
from sparing._result_names import ResultNames
from sparing._rounding import with_error
from sparing._text_tables import Cell, text_table

NUMBERS_SHOWN_MAX = 10_000
Units = Mapping[str, str]
Told = Callable[[Decimal, str], str]
_IN_RHO: Units = {}


def answer_text(answer: Answer, *, unit: str = "rho") -> str:
    """The numbers of an answer with labels and half widths, and a line on the query's cost in this unit."""
    labels, values, distances = answer.measured()
    shown, labels = min(len(values), NUMBERS_SHOWN_MAX), labels[:NUMBERS_SHOWN_MAX]
    names = list(dict.fromkeys(name for label in labels for name in label))
    free = ResultNames(names).free
    rows = [
        [*(_cell(label.get(name, "")) for name in names), *((text, True) for text in with_error(value, *around))]
        for label, value, around in zip(labels, values, distances, strict=False)
    ]
    lines = [*warning_lines(answer), text_table([*names, *map(free, ("value", "± 95 %"))], rows), ""]
    if len(values) > shown:
        lines.append(f"{shown} of {len(values)} numbers; --json prints all.")
    scale = "" if answer.scale is None else f"scale {_short(answer.scale)}, "
    lines.append(
        f"{scale}sigma {_short(answer.sigma)}, worst case {_amount(answer.worst_case_rho, unit)}{_share(answer)}."
    )
    lines += [printable(words) for words in dict.fromkeys((answer.coverage_words, *answer.caveats)) if words]
    again = ", not charged again" if answer.reused else ""
    lines.append(f"Release {answer.id}, query {answer.sequence} of the dataset{again}.")
    return "\n".join(lines)


def preview_text(preview: Preview, *, unit: str = "rho") -> str:
    """Everything public about a query, a fact in a row; charges are in the unit of its dataset."""
    allowed, cost = preview.allowance_left_rho, preview.public_cost
    facts: dict[str, object] = {
        "numbers": preview.dimension,
        "scale": _given(preview.scale),
        "sigma": _short(preview.sigma),
        "half width (95 %)": _short(preview.half_width_95),
        "grid": _short(preview.grid),
        "worst case": f"{_amount(preview.worst_case_rho, unit)}{_share(preview)}",
        "allowance left": "no allowance is set" if allowed is None else _amount(allowed, unit),
        "clip": _given(preview.l2_clip),
        "worst case epsilon": _given(preview.worst_case_epsilon),
        "largest countable norm": _given(preview.largest_countable_norm),
        "coverage": None if preview.coverage_certified is None else preview.coverage_words,
        "notes": " ".join(preview.notes) if preview.notes else None,
        "delay": None if cost is None else f"{_short(cost.delay_ms)} ms",
    }
    return "\n".join([*warning_lines(preview), _facts(facts)])


def warning_lines(priced: Answer | Preview) -> list[str]:
    """The lines with the warnings of an answer or a preview, which are printed before it."""
    return [f"warning: {printable(warning)}" for warning in priced.warnings]


def datasets_table(datasets: Sequence[DatasetRow]) -> str:
    """A table with a row for each dataset."""
    unit, told = _unit_of([each.unit for each in datasets])
    rows = [
        [
            _cell(each.name),
            _cell(_guarantee(each)),
            (told(each.budget_rho, each.unit), True),
            (str(each.capacity), True),
            _cell(", ".join(each.table_names)),
            _cell("archived" if each.archived else ""),
        ]
        for each in datasets
    ]
    return text_table(["dataset", "guarantee", f"budget{unit}", "capacity", "tables", ""], rows)


def dataset_text(dataset: Dataset) -> str:
    """The public facts of a dataset, and the columns of its tables with their domains."""
    facts: dict[str, object] = {
        "dataset": dataset.name,
        "guarantee": _guarantee(dataset),
        "budget": _amount(dataset.budget_rho, dataset.unit),
        "capacity": f"{dataset.capacity} individuals",
        "epoch": dataset.epoch,
        "archived": "it answers no new query" if dataset.archived else None,
    }
    parts = [_facts(facts)]
    for name, table in dataset.tables.items():
        if isinstance(table, Mapping):
            columns = [
                [_cell(each), _cell(column.get("type")), _cell(_domain(column))]
                for each, column in table["columns"].items()
            ]
            rows = (
                f", at most {table['rows_per_individual']} rows an individual" if "rows_per_individual" in table else ""
            )
            parts += [
                "",
                printable(f"{name} ({table['kind']}, key {table['key']}{rows})"),
                text_table([], columns, indent="  "),
            ]
    return "\n".join(parts)


def history_table(releases: Sequence[ReleaseRow], units: Units = _IN_RHO) -> str:
    """A table with a row for each release; the steps of one fit share a row, with their last step and total cost.

    `units` are the units of the datasets by name.
    """
    return _history(folded(releases), units)


def steps_table(releases: Sequence[ReleaseRow], units: Units = _IN_RHO) -> str:
    """A table with a row for each release, also for each step of a fit."""
    return _history([[each] for each in releases], units)


def _history(lines: Sequence[Sequence[ReleaseRow]], units: Units) -> str:
    unit, told = _unit_of([units.get(steps[0].dataset, "rho") for steps in lines])
    rows = [_release_row(steps, units, told) for steps in lines]
    return text_table(["released (UTC)", "dataset", "query", "numbers", "sigma", f"worst{unit}", "asked", "id"], rows)


def _release_row(steps: Sequence[ReleaseRow], units: Units, told: Told) -> list[Cell]:
    """The row of the steps of one fit, newest first, or of one release; a repeated answer costs once."""
    newest, cost = steps[0], {each.id: each.worst_case_rho for each in steps}
    return [
        _cell(f"{newest.released_at:%Y-%m-%d %H:%M}"),
        _cell(newest.dataset),
        (str(newest.sequence), True),
        (str(newest.dimension), True),
        (_short(newest.sigma), True),
        (told(sum(cost.values(), Decimal(0)), units.get(newest.dataset, "rho")), True),
        _cell(f"{len(steps)} steps: {newest.words}" if len(steps) > 1 else newest.words),
        _cell(newest.id),
    ]


def allowances_table(allowances: Sequence[Allowance], units: Units = _IN_RHO) -> str:
    """A table with a row for each dataset."""
    unit, told = _unit_of([units.get(each.dataset, "rho") for each in allowances])
    rows = [
        [
            _cell(each.dataset),
            *(
                (empty if amount is None else told(amount, units.get(each.dataset, "rho")), True)
                for amount, empty in ((each.allowance_rho, "none set"), (each.spent_rho, ""), (each.left_rho, ""))
            ),
        ]
        for each in allowances
    ]
    return text_table(["dataset", f"allowed{unit}", f"spent{unit}", f"left{unit}"], rows)


def _unit_of(units: Sequence[str]) -> tuple[str, Told]:
    """The ending of headers of amounts, and a function that writes an amount; a common unit is only in the header."""
    several = len(set(units)) > 1
    return ("", _amount) if several else (f" {units[0] if units else 'rho'}", lambda amount, _unit: _short(amount))


def _amount(amount: Decimal, unit: str) -> str:
    return f"{printable(unit)} {_short(amount)}".lstrip()


def _guarantee(dataset: Dataset | DatasetRow) -> str:
    stated = dataset.guarantee
    if stated.epsilon is None:
        return "rho"
    return f"epsilon {stated.epsilon}" + ("" if stated.delta is None else f", delta {stated.delta}")


def _domain(column: Mapping[str, Any]) -> str:
    listed = column.get("categories")
    if listed is not None:
        return ", ".join(map(str, listed[:10])) + (f", ... ({len(listed)} in all)" if len(listed) > 10 else "")
    if column.get("size") is not None:
        return f"0 to {column['size'] - 1}"
    return f"{column['lower']} to {column['upper']}" if "lower" in column else ""


def _share(priced: Answer | Preview) -> str:
    share = priced.worst_case_share
    return "" if share is None else f", {_short(100 * share)} % of the budget"


def _cell(value: object) -> Cell:
    return printable(str(value).lower() if isinstance(value, bool) else value), False


def _short(number: PerItem | Decimal) -> str:
    return ", ".join(f"{float(each):.6g}" for each in (number if isinstance(number, tuple) else (number,)))


def _given(number: PerItem | None) -> str | None:
    return None if number is None else _short(number)


def _facts(facts: Mapping[str, object]) -> str:
    """A fact in a row, without those that are None."""
    return text_table([], [[_cell(name), _cell(fact)] for name, fact in facts.items() if fact is not None])
