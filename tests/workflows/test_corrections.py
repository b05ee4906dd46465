"""Corrections that name a category which is not declared."""

import json
from io import BytesIO
from typing import Any

import pytest

from service.ledger.model.errors import InvalidRequest
from tests.factories import PEOPLE, individual_named, open_replica, register

TABLES: dict[str, Any] = {
    "people": {
        **PEOPLE,
        "columns": {
            **PEOPLE["columns"],  # type: ignore[dict-item]
            "cut": {"type": "category", "categories": ["Fair", "Very Good", "Ideal", 7]},
            "item": {"type": "category", "size": 40},
        },
    }
}


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("cut", "ideal", "is no category of the column; null empties it; did you mean 'Ideal'?"),
        ("cut", "Very good", "is no category of the column; null empties it; did you mean 'Very Good'?"),
        ("cut", 77, "is no category of the column; null empties it"),
        ("cut", "xyz", "is no category of the column; null empties it"),
        ("item", 40, "is no category of the column; they are the integers below its size"),
    ],
)
def test_the_nearest_category_is_named(column: str, value: str | int, message: str) -> None:
    """An upload counts such a value and stores NULL; of one record that would lose it."""
    with open_replica() as replica:
        register(replica, tables=TABLES)
        rows = BytesIO(b"person_id,country,age,spend,cut,item\nann,NO,1,1,Fair,3\n")
        replica.curators.append_rows("survey", "people", "text/csv", rows)
        with pytest.raises(InvalidRequest) as refused:
            replica.curators.correct("survey", "ann", {"age": 5, column: value})
        assert [(error.field, error.message) for error in refused.value.errors] == [(column, message)]
        assert [act.act for act in replica.curators.acts("survey", cursor=None, limit=9).items] == ["rows"]
        assert replica.curators.correct("survey", "ann", {"cut": "Ideal", "item": None}).nulls["item"] == 1


@pytest.mark.parametrize("value", [10**20, -(10**30), 1e300])
def test_a_number_beyond_64_bits_is_refused_as_in_an_upload(value: float) -> None:
    """By the column's name, whether it is written as a whole number or not."""
    with open_replica() as replica:
        register(replica)
        row = b'{"person_id":"ann","country":"NO","age":%s,"spend":1}\n'
        replica.curators.append_rows("survey", "people", "application/x-ndjson", BytesIO(row % b"1"))
        with pytest.raises(InvalidRequest) as of_correction:
            replica.curators.correct("survey", "ann", {"age": value})
        file = BytesIO(row.replace(b"ann", b"bob") % json.dumps(value).encode())
        with pytest.raises(InvalidRequest) as of_upload:
            replica.curators.append_rows("survey", "people", "application/x-ndjson", file)
        (corrected,), (uploaded,) = of_correction.value.errors, of_upload.value.errors
        assert (corrected.field, corrected.message) == ("age", uploaded.message)


VECTORS: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "pixels": {"type": "vector", "length": 3, "lower": 0, "upper": 255},
        },
    }
}


def test_a_vector_is_corrected_as_a_whole() -> None:
    """A list of its length, within the bounds, or null; other columns and their corrections leave it as it is."""
    with open_replica() as replica:
        register(replica, tables=VECTORS)
        rows = b'{"person_id":"ann","age":4,"pixels":[1,2,3]}\n{"person_id":"bob","age":5,"pixels":[7,8,9]}'
        replica.curators.append_rows("survey", "people", "application/x-ndjson", BytesIO(rows))
        own = individual_named(replica, "ann")

        def held() -> Any:
            return replica.individuals.record(own, "survey").tables["people"].rows[0]["pixels"]

        assert held() == [1, 2, 3]
        replica.curators.correct("survey", "ann", {"age": 9})
        assert held() == [1, 2, 3]
        with pytest.raises(InvalidRequest) as refused:
            replica.curators.correct("survey", "ann", {"pixels": (4.0, 5.0, 300.0)})
        assert [(error.field, error.message) for error in refused.value.errors] == [("pixels", "is outside 0 to 255")]
        replica.curators.correct("survey", "ann", {"pixels": (4.0, 5.0, 255.0)})
        with pytest.raises(InvalidRequest) as refused:
            replica.curators.correct("survey", "ann", {"pixels": (1.0, 2.0)})
        assert [(error.field, error.message) for error in refused.value.errors] == [
            ("pixels", "must be a list of 3 numbers")
        ]
        assert held() == [4, 5, 255]
        replica.curators.correct("survey", "ann", {"pixels": None})
        assert held() is None
        bob = individual_named(replica, "bob")
        assert replica.individuals.record(bob, "survey").tables["people"].rows[0]["pixels"] == [7, 8, 9]
