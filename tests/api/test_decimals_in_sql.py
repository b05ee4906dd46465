"""SQL over decimals and years gives the counts of decimal arithmetic, in the real service and in the client's fake."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from sparing import Client
from tests.api.twins import Twins, twins

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "temperature": {"type": "real", "lower": 34.9, "upper": 42},
            "rating": {"type": "real", "lower": 0, "upper": 30},
            "minutes": {"type": "real", "lower": 0, "upper": 1000},
            "joined": {"type": "date", "lower": "2023-06-01", "upper": "2026-12-31"},
        },
    }
}
chance = random.Random(1)
ROWS: list[dict[str, Any]] = [
    {
        "person_id": f"p{number}",
        "temperature": chance.randint(349, 420) / 10,
        "rating": (rating := chance.randint(0, 250) / 10),
        "minutes": float(51 - 2 * Decimal(str(rating))) if number % 2 else chance.randint(0, 600) / 10,
        "joined": f"{chance.randint(2023, 2026)}-{chance.randint(6, 12):02}-{chance.randint(1, 28):02}",
    }
    for number in range(400)
]


@pytest.fixture(scope="module")
def both() -> Iterator[Twins]:
    """Both services with people whose numbers have one decimal."""
    with twins({"care": (TABLES, {"people": ROWS})}, rho="1000") as found:
        yield found


def decimals(name: str) -> list[Decimal]:
    """A column as it was written."""
    return [Decimal(str(row[name])) for row in ROWS]


def asked(text: str) -> Callable[[Client], Any]:
    """A query in SQL."""
    return lambda client: client.sql(text, dataset="care", sigma=1)


def counts(both: Twins, text: str) -> dict[str, int]:
    """The counts of a query by label, or by nothing; those of both services are the same but for noise."""
    ((status, _, document),) = both.compare(asked(text))
    assert status == 200, document
    named = [next((str(label[name]) for name in label if name != "select"), "") for label in document["labels"]]
    return {name: round(count) for name, count in zip(named, document["values"], strict=True)}


@pytest.mark.parametrize("width", ["0.1", "0.2", "0.05"])
def test_a_bin_has_the_values_from_its_edge_on(both: Twins, width: str) -> None:
    """[36.6, 36.8) has those of 36.6 and of 36.7."""
    found = counts(both, f"SELECT COUNT(*) FROM people GROUP BY BINS(temperature, {width})")  # noqa: S608 - our own SQL
    edges = [tuple(map(Decimal, name[1:-1].split(", "))) for name in found]
    inside = [
        sum(low <= value < high or (name.endswith("]") and value == high) for value in decimals("temperature"))
        for name, (low, high) in zip(found, edges, strict=True)
    ]

    assert list(found.values()) == inside
    assert sum(inside) == len(ROWS)
    assert all(high - low == Decimal(width) for low, high in edges)


@pytest.mark.parametrize("sign", ["<", "<=", "=", "<>", ">=", ">"])
def test_equal_decimals_are_equal(both: Twins, sign: str) -> None:
    """`rating * 2 + minutes - 1` is 50 for half of the people."""
    text = f"SELECT COUNT(*) FROM people WHERE rating * 2 + minutes - 1 {sign} 50"  # noqa: S608 - our own SQL
    totals = [2 * rating + minutes - 1 for rating, minutes in zip(decimals("rating"), decimals("minutes"), strict=True)]
    chosen = sum("<=>"[1 + int(total.compare(50))] in sign for total in totals)

    assert counts(both, text) == {"": chosen}
    assert 200 <= totals.count(Decimal(50)) < len(ROWS)


def test_years_are_those_of_the_dates(both: Twins) -> None:
    """As groups and as a condition."""
    years = Counter(row["joined"][:4] for row in ROWS if row["joined"] >= "2023-06-01")
    text = "SELECT EXTRACT(YEAR FROM joined), COUNT(*) FROM people {} GROUP BY YEAR(joined)"

    assert counts(both, text.format("")) == years
    assert counts(both, text.format("WHERE YEAR(joined) BETWEEN 2024 AND 2025")) == {
        year: count if year in {"2024", "2025"} else 0 for year, count in years.items()
    }
