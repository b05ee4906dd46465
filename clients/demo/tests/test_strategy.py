"""The plan asks about every area once, follows the answers, and uses public information alone."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparing_demo.dataset import Area, WebVisits, read_web_visits
from sparing_demo.strategy import TOPICS, Chooser, topic_of

AREAS = read_web_visits().areas


def order(areas: tuple[Area, ...], answers: dict[str, float]) -> list[Area]:
    """The order of all areas, given these answers."""
    chooser, asked = Chooser(areas), []
    while (area := chooser.next_area()) is not None:
        asked.append(area)
        chooser.learn(area, answers[area.id])
    return asked


@settings(max_examples=30)
@given(st.lists(st.floats(-1e9, 1e9), min_size=len(AREAS), max_size=len(AREAS)))
def test_every_area_is_asked_about_exactly_once(answers: list[float]) -> None:
    """For all answers: 294 queries."""
    asked = order(AREAS, {area.id: answer for area, answer in zip(AREAS, answers, strict=True)})

    assert Counter(asked) == Counter(AREAS)


def test_each_topic_is_scouted_first() -> None:
    """One query for each topic, about its area with the shortest address, whatever the answers."""
    asked = order(AREAS, {area.id: float(area.id) for area in AREAS})
    topics = [topic_of(area) for area in asked[: len(TOPICS) + 1]]

    assert len(set(topics)) == len(topics)
    for scout in asked[: len(topics)]:
        assert len(scout.path) == min(len(area.path) for area in AREAS if topic_of(area) == topic_of(scout))


def test_the_answers_steer() -> None:
    """After the scouting queries the topic with the highest answers comes next until its answers fall."""
    answers = {area.id: 1000.0 if topic_of(area) == "countries" else 10.0 for area in AREAS}
    asked = order(AREAS, answers)[len(TOPICS) + 1 :]
    countries = sum(topic_of(area) == "countries" for area in AREAS) - 1

    assert {topic_of(area) for area in asked[:countries]} == {"countries"}


def test_the_ids_play_no_part() -> None:
    """They carry information about the data, so the plan must not follow from them."""
    renamed = tuple(Area(id=str(9999 - int(area.id)), title=area.title, path=area.path) for area in reversed(AREAS))
    asked = order(AREAS, {area.id: float(len(area.title)) for area in AREAS})
    again = order(renamed, {area.id: float(len(area.title)) for area in renamed})

    assert [area.path for area in asked] == [area.path for area in again]


def test_it_finds_the_visits_sooner_than_chance(web_visits: WebVisits) -> None:
    """On the data itself: a sixth of the queries find half of the visits."""
    asked = order(AREAS, {area.id: float(web_visits.visitors[area.id]) for area in AREAS})
    found = sum(web_visits.visitors[area.id] for area in asked[:50])

    assert found > 0.45 * sum(web_visits.visitors.values())


@pytest.mark.parametrize(
    ("title", "path", "topic"),
    [
        ("Norway", "/norge", "countries"),
        ("Windows95 Support", "/windowssupport", "windows"),
        ("Visual Basic Support", "/vbasicsupport", "support"),
        ("Free Downloads", "/msdownload", "front page"),
        ("isapi", "/isapi", "everything else"),
    ],
)
def test_topics(title: str, path: str, topic: str) -> None:
    """The first topic with a word of the title or address."""
    assert topic_of(Area(id="1", title=title, path=path)) == topic
