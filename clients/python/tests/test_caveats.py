"""Reasons why a number may not be the truth stand beside it, on every surface and in numbers worked out from it."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import sparing
from sparing import (
    Answer,
    InvalidRequestError,
    col,
    combine,
    consistent_histogram,
    consistent_tables,
    count,
    dbapi,
    feature,
    own,
    predict,
    ratios,
)
from sparing._cli_tables import answer_text, preview_text
from sparing.learn import LinearRegression
from sparing.testing import FakeService

MISSING = "People may be missing"
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "town": {"type": "category", "categories": ["a", "b"]},
            "age": {"type": "integer", "lower": 0, "upper": 9},
            "income": {"type": "real", "lower": 0, "upper": 1000},
            "member": {"type": "boolean"},
        },
    },
    "buys": {
        "kind": "events",
        "key": "id",
        "rows_per_individual": 64,
        "columns": {"price": {"type": "integer", "lower": 0, "upper": 9}},
    },
}
ROWS = [{"id": key, "town": "ab"[key % 2], "age": 5, "income": 0, "member": key < 15} for key in range(20)]


@pytest.fixture
def fake() -> Iterator[FakeService]:
    """A dataset of which the limits pay for one answer that is certified, and for no more."""
    with FakeService() as service:
        service.add_dataset("shop", TABLES, rows={"people": ROWS, "buys": [{"id": 1, "price": 2}]}, rho=1)
        yield service


def asked(fake: FakeService, **question: Any) -> Answer:
    """A fresh answer at three fifths of the limit."""
    return fake.client().queries.ask(
        **{"dataset": "shop", "select": [count()], "share": 0.6, "reuse": False, **question}
    )


def shown(answer: Answer) -> dict[str, str]:
    """By surface, what a person sees of an answer."""
    frame, table = answer.to_pandas(), answer.to_arrow()
    return {
        "repr": repr(answer),
        "notebook": answer._repr_html_(),
        "pandas": str(frame.attrs),
        "arrow": str(table.schema.metadata),
        "chart": str(answer.plot().get_title()),
        "command line": answer_text(answer),
    }


def test_people_who_may_be_missing_are_said_on_every_surface(fake: FakeService) -> None:
    """And of a certified answer nothing of the kind is said."""
    certified, uncertified = (asked(fake, group_by=["town"]) for _ in range(2))
    assert (certified.coverage_certified, uncertified.coverage_certified) == (True, False)

    for surface, text in shown(uncertified).items():
        assert MISSING in text, surface
    for surface, text in shown(certified).items():
        assert MISSING not in text, surface
    for answer in (certified, uncertified):
        for frame in (answer.to_pandas(), answer.to_polars().to_pandas(), answer.to_arrow().to_pandas()):
            assert frame["coverage_certified"].tolist() == [answer.coverage_certified] * 2


def test_sql_warns_of_each_reason(fake: FakeService) -> None:
    """Tools that read rows alone see no other words."""
    fresh = sparing.connect(dataset="shop", share=0.6, client=fake.client()).cursor()
    clipped = sparing.connect(dataset="shop", sigma=1000, l2_clip=40, client=fake.client()).cursor()
    told = [
        warned(fresh, "SELECT COUNT(*) FROM people"),
        warned(fresh, "SELECT town, COUNT(*) FROM people GROUP BY town"),
        warned(clipped, "SELECT COUNT(*) FROM buys"),
    ]
    missing = f"{MISSING}: some may have run out of budget."
    assert told == [[], [missing], [missing, "An individual with more than 40 counts as 40."]]


def warned(cursor: dbapi.Cursor, statement: str) -> list[str]:
    """The warnings of a statement."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        cursor.execute(statement)
    assert all(each.category is dbapi.Warning for each in found)
    return [str(each.message) for each in found]


def test_a_number_worked_out_is_certified_only_if_its_answers_are(fake: FakeService) -> None:
    """Combinations have the words, and other numbers a member that their text shows."""
    first, second = (asked(fake, group_by=["town"]) for _ in range(2))
    total = asked(fake)
    (average,) = fake.client().dataset("shop").query().mean("age").noise(share=0.6).run().averages
    bins = asked(fake, group_by=[col("age").bins([0, 5, 9])])

    assert MISSING in repr(combine([first, second]))
    assert MISSING not in repr(combine([first]))
    worked_out = [
        *ratios(first, total),
        *consistent_tables([first, total]).tables[0],
        average,
        consistent_histogram([bins]),
        consistent_histogram([bins]).between(0, 5),
    ]
    for each in worked_out:
        assert "coverage_certified=False" in repr(each)
    assert "coverage_certified=True" in repr(consistent_tables([first]).tables[0][0])


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"l2_clip": 40}, "An individual with more than 40 counts as 40."),
        ({"rows": 10}, "An individual with more than 10 rows counts as 10 with their mean."),
        ({"rows": 1}, "An individual with more than 1 row counts as 1 with their mean."),
        (
            {"select": [sparing.sum_("price")], "l2_clip": 40},
            "An individual whose vector is longer than 40 counts for less.",
        ),
    ],
    ids=["count", "rows", "one row", "sum"],
)
def test_bounds_by_which_an_individual_counts_for_less_are_said(
    fake: FakeService, question: dict[str, Any], words: str
) -> None:
    """Before the query is asked and with its answer."""
    answer = asked(fake, **{"from_": "buys", **question})
    assert answer.notes == (words,)
    for surface, text in shown(answer).items():
        assert words in text, surface
    preview = fake.client().queries.preview(
        **{"dataset": "shop", "from_": "buys", "select": [count()], "share": 0.1, **question}
    )
    assert words in preview_text(preview)


def test_a_bound_that_cuts_off_nobody_is_not_said(fake: FakeService) -> None:
    """A clip above what the declared rows can make, and rows that all may have."""
    assert asked(fake, from_="buys", l2_clip=64).notes == ()
    assert asked(fake, from_="buys", rows=64).notes == ()


def test_a_repeated_answer_says_when_it_was_released(fake: FakeService) -> None:
    """The data may have changed since; nothing says whether they have."""
    first, again = (asked(fake, reuse=True) for _ in range(2))
    day = f"{first.released_at:%Y-%m-%d}"
    assert first.caveats == ()
    assert again.caveats == (f"This answer was released on {day}; the data may have changed since.",)
    assert again.caveats[0] in repr(again)


def test_the_value_of_one_mean_is_the_mean(fake: FakeService) -> None:
    """It lies in the declared domain, however large the noise, and so does its interval."""
    answer = fake.client().dataset("shop").query().mean("age").noise(share=0.5).run()
    assert answer.value == answer.averages[0].value
    assert answer.interval() == answer.averages[0].interval()


@pytest.fixture
def precise(fake: FakeService) -> Any:
    """Queries of the same rows at noise that hardly counts, in another dataset."""
    fake.add_dataset("precise", TABLES, rows={"people": ROWS, "buys": [{"id": 1, "price": 2}]}, rho=10**4)
    return fake.client().dataset("precise").query()


def test_the_mean_of_a_boolean_is_a_rate(precise: Any) -> None:
    """The rate is of those with a value; quantiles of it are refused."""
    rate = precise.mean("member").noise(rho=100).run()
    assert rate.value == pytest.approx(0.75, abs=0.05)
    assert (rate.averages[0].bounds.low, rate.averages[0].bounds.high) == (0, 1)
    with pytest.raises(InvalidRequestError, match="is true or false: ask for the mean"):
        precise.quantile("member", 0.5).noise(rho=5).run()


def test_means_of_own_events_and_predictions_keep_to_their_bounds(precise: Any) -> None:
    """Those of a clip, of a probability, and of none that nobody states."""
    bought = precise.mean(own("buys", clip=(0, 9))).noise(rho=100).run()
    assert (bought.averages[0].bounds.high, bought.averages[0].label) == (9, {"select": "mean(own 56e53b4e)"})
    assert bought.value == pytest.approx(0.05, abs=0.1)
    probable = precise.mean(predict([feature("age")], [0.0])).noise(rho=100).run()
    assert probable.value == pytest.approx(0.5, abs=0.05)
    number = predict([feature("age")], [1.0], link="identity")
    with pytest.raises(InvalidRequestError, match="has a prediction without declared bounds; give it some by clip"):
        precise.mean(number).noise(rho=100).run()
    assert precise.mean(number.clip(0, 9)).noise(rho=100).run().value == pytest.approx(5, abs=0.5)


def test_an_average_that_noise_leaves_nothing_of_is_said_to_be_of_no_use(fake: FakeService) -> None:
    """By its item and group, of several by the first few."""
    query = fake.client().dataset("shop").query().noise(share=1e-6)
    (words,) = query.mean("age").run().caveats
    assert words == "The interval is the whole domain, and so of no use: mean(age)."
    (words,) = query.group_by("town").mean("age").stddev("age").run().caveats
    assert words.endswith(": mean(age) of a, stddev(age) of a, mean(age) of b and 1 more.")


def test_a_quantile_within_a_full_bin_is_said_to_be_interpolated(precise: Any) -> None:
    """Everybody has nothing, and the first bin is that of all up to a 64th of the bound."""
    answer = precise.quantile("income", 0.5).noise(rho=5).run()
    assert "interpolated within a bin" in "".join(answer.caveats)
    assert repr(answer).startswith("Answer(7.8 ± 7.8, caveats=")
    assert precise.quantile("age", 0.5).noise(rho=5).run().caveats == ()


def test_a_model_says_that_people_may_be_missing(fake: FakeService) -> None:
    """By a member, and where they may by its text."""
    people = fake.client().dataset("shop")
    certified, uncertified = (
        LinearRegression([feature((col("age") - 5) * scale)], target="member").fit(people, share=0.6)
        for scale in (0.2, 0.1)
    )
    assert (certified.coverage_certified_, uncertified.coverage_certified_) == (True, False)
    assert "coverage_certified_" not in repr(certified)
    assert "coverage_certified_=False" in repr(uncertified)
