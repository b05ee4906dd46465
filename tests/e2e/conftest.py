"""Each test begins with a home of its own, a copy of one that was begun before."""

from pathlib import Path

import pytest

from tests.e2e.homes import Homes, SurveyHome


@pytest.fixture
def home(homes: Homes) -> Path:
    """A home without a dataset."""
    return homes.begun()


@pytest.fixture
def survey_home(homes: Homes) -> SurveyHome:
    """A home with three people whom no query has asked about."""
    return homes.surveyed()


@pytest.fixture
def answered_home(homes: Homes) -> SurveyHome:
    """A home with three people and three answers."""
    return homes.answered()
