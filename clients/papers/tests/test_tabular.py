"""The table that a package ships: its features, and how it is divided."""

from dataclasses import replace

import numpy as np
import pytest

from sparing_papers import tabular
from sparing_papers.tabular import BRACKETS, labelled, read_people, split

PEOPLE = read_people()


def test_the_file_is_that_of_the_paper() -> None:
    """9,275 people within the selection that the bounds state, a quarter of them with an account; nothing lacks."""
    assert len(PEOPLE) == 9275
    assert (PEOPLE.age.min(), PEOPLE.age.max()) == (25, 64)
    assert 10_000 < PEOPLE.income.min() < PEOPLE.income.max() < 200_000
    assert PEOPLE.has_account.mean() == pytest.approx(0.2543, abs=5e-5)
    for flags in (PEOPLE.is_married, PEOPLE.is_male, PEOPLE.is_eligible, PEOPLE.has_account):
        assert set(flags.tolist()) == {0, 1}


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a file that is not found."""
    monkeypatch.setattr(tabular, "PACKAGE", "no-such-package")
    with pytest.raises(FileNotFoundError, match="the package no-such-package is not installed"):
        read_people.__wrapped__()


def test_features_are_those_of_one_individual_alone_and_within_their_domains() -> None:
    """In whole sixteenths, which the service's steps hold exactly; a household above eight counts as eight."""
    features = PEOPLE.features
    rows = np.array([5, 17, 9000])

    assert np.array_equal(PEOPLE.of(rows).features, features[rows])
    assert np.array_equal(features * 16, np.rint(features * 16))
    assert features.shape == (9275, 11)
    assert np.all(features[:, :6].sum(axis=1) == 1)
    assert (np.abs(features).max(axis=0) <= np.array([1] * 6 + [1.25, 1, 1, 1, 1])).all()
    crowded = replace(PEOPLE.of(rows), size=np.array([8, 9, 13]))
    assert set(crowded.features[:, 7].tolist()) == {1.0}


def test_brackets_are_closed_on_the_left() -> None:
    """The service's bins are, too."""
    people = replace(PEOPLE.of(np.arange(4)), income=np.array([10_000, 19_999, 20_000, 200_000]))

    assert people.bracket.tolist() == [0, 0, 1, len(BRACKETS) - 1]


def test_a_split_by_the_seed_has_everybody_once() -> None:
    """Equal seeds divide equally, bit by bit; other seeds otherwise."""
    first, again, other = (labelled(*split(PEOPLE, seed)) for seed in (1, 1, 2))

    assert (len(first.train), len(first.test)) == (6956, 2319)
    assert np.array_equal(first.train, again.train)
    assert np.array_equal(first.test_labels, again.test_labels)
    assert not np.array_equal(first.train, other.train)
    together = np.vstack([first.train, first.test])
    assert np.array_equal(np.sort(together, axis=0), np.sort(PEOPLE.features, axis=0))
