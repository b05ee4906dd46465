"""The copy of the data is complete."""

import csv
import io
from collections import Counter

from sparing_demo.dataset import WebVisits


def test_the_data_is_what_its_description_says(web_visits: WebVisits) -> None:
    """37,711 people, 294 areas, 113,845 different pairs, three areas a person."""
    assert len(web_visits.people) == len(set(web_visits.people)) == 37_711
    assert len(web_visits.areas) == len({area.id for area in web_visits.areas}) == 294
    assert len(web_visits.visits) == len(set(web_visits.visits)) == 113_845
    assert {area for _, area in web_visits.visits} <= {area.id for area in web_visits.areas}
    assert 3.0 < sum(web_visits.areas_visited.values()) / len(web_visits.people) < 3.1


def test_the_true_answers_and_the_table_of_people(web_visits: WebVisits) -> None:
    """The curator's knowledge."""
    rows = list(csv.DictReader(io.StringIO(web_visits.people_csv().decode())))

    assert web_visits.visitors["1008"] == 12_511
    assert web_visits.visitors["1287"] == 0
    assert [row["person_id"] for row in rows] == list(web_visits.people)
    assert Counter(row["part"] for row in rows) == {"training": 32_711, "test": 5_000}


def test_titles_have_no_stray_blanks(web_visits: WebVisits) -> None:
    """They are shown in a table."""
    assert [area for area in web_visits.areas if area.title != area.title.strip() or not area.title] == []
