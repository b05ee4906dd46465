"""Nearest names: of those that are given alone, bounded in work, and none where nothing is near."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.problems import quoted
from service.query.suggestions import COMPARED_MAX, NAME_MAX, did_you_mean, no_dataset


@pytest.mark.parametrize(
    ("asked", "names", "meant"),
    [
        ("ideal", ["Fair", "Ideal", "Premium"], "'Ideal'"),
        ("no", ["NO", "SE"], "'NO'"),
        (" Oslo ", ["Bergen", "Oslo"], "'Oslo'"),
        ("prize", ["carat", "price"], "'price'"),
        ("dimonds", ["diamonds", "shop"], "'diamonds'"),
        ("1", [1, 2], "1"),
        (1, ["1", "2"], "'1'"),
        ("people.tovn", ["price", "people.town"], "'people.town'"),
    ],
)
def test_the_nearest_name_is_suggested(asked: object, names: list[str | int], meant: str) -> None:
    """The suggestion has the spelling of the schema."""
    assert did_you_mean(asked, names) == f"; did you mean {meant}?"


@pytest.mark.parametrize("asked", ["", "zzz", "x" * (NAME_MAX + 1), "\ud800", "Ideal", 1.5, True, None, 7])
def test_nothing_is_suggested_where_nothing_is_near(asked: object) -> None:
    """Nor the name itself."""
    assert did_you_mean(asked, ["Fair", "Ideal", 3]) == ""


@given(st.text(max_size=70) | st.integers() | st.floats(), st.lists(st.text(max_size=70) | st.integers(), max_size=20))
def test_only_a_given_name_is_suggested(asked: object, names: list[str | int]) -> None:
    """For any request and any names; the text is ASCII and short."""
    said = did_you_mean(asked, names)

    assert said in {"", *(f"; did you mean {quoted(name)}?" for name in names)}
    assert said.isascii()
    assert len(said) < 90


class Listed(dict[str, int]):
    """Names, and how many of them were looked at one after the other."""

    looked_at = 0

    def __iter__(self) -> Iterator[str]:
        for name in super().__iter__():
            self.looked_at += 1
            yield name


def test_of_a_million_categories_few_are_looked_at() -> None:
    """In other capitals a name is found at once; for the nearest only the first are compared."""
    names = Listed({f"category {number}": number for number in range(2**20)})
    assert did_you_mean("CATEGORY 1048575", names) == "; did you mean 'category 1048575'?"
    assert did_you_mean("categorie 7", names) == "; did you mean 'category 7'?"
    assert did_you_mean("z" * NAME_MAX, names) == ""
    assert names.looked_at < COMPARED_MAX


def test_the_work_is_bounded_by_characters() -> None:
    """Names that are all alike are the most work for each."""
    looked_at = 0

    class Names(list[str]):
        def __iter__(self) -> Iterator[str]:
            nonlocal looked_at
            for name in super().__iter__():
                looked_at += 1
                yield name

    assert did_you_mean("ba" * 18, Names("ab" * 16 + f"{number:04}" for number in range(5000))) != ""
    assert 0 < (looked_at - 1) * 36 * 36 <= COMPARED_MAX


def test_a_dataset_that_is_not_there_is_named() -> None:
    """And the nearest, if there is one."""
    assert no_dataset("dimonds", ["diamonds"]) == "There is no dataset 'dimonds' for this key; did you mean 'diamonds'?"
    assert no_dataset("care", []) == no_dataset("care", ["care"]) == "There is no dataset 'care' for this key."
