"""Composite items through the service: one release for all forms of a query, and to each analyst its own form."""

from typing import Any

import orjson
import pytest

from service.ledger.model.errors import KeyConflict
from service.ledger.model.views import Principal
from service.maintenance.rebuild_answer import rebuild
from service.query.words import in_words
from service.workflows.replica import Replica
from tests.factories import analyst, ask, individual_named
from tests.memory.store import MemoryStore
from tests.workflows.surveys import counts_of, findings, on_both_stores

VALUE: dict[str, Any] = {"col": "age"}
ABOVE = {"sub": [VALUE, 60]}
ONES: dict[str, Any] = {"sum": {"of": {"clip": [VALUE, 1, 1]}}}
SQUARES: dict[str, Any] = {"sum": {"of": {"sub": [{"mul": [{"abs": ABOVE}, {"abs": ABOVE}]}, 1800]}}}
LINEAR: dict[str, Any] = {
    "select": [{"sum": {"of": ABOVE}}, ONES, SQUARES],
    "noise": {"share": 0.25, "weights": [12, 7, 5]},
}
FORMS: dict[str, dict[str, Any]] = {
    "variance": {"select": [{"variance": {"column": "age"}}], "noise": {"share": 0.25}},
    "stddev": {"select": [{"stddev": {"of": VALUE}}], "noise": {"share": 0.25}},
    "linear": LINEAR,
}


def read(body: bytes) -> dict[str, Any]:
    """An answer as JSON."""
    found: dict[str, Any] = orjson.loads(body)
    return found


@on_both_stores
@pytest.mark.parametrize("first", FORMS)
def test_forms_of_one_query_share_a_release(store: MemoryStore, replica: Replica, ana: Principal, first: str) -> None:
    """Charged once, whichever was asked first; each answer is in the form of its request, and verified as such."""
    bea = analyst(replica, "bea")
    answers = {first: read(ask(replica, ana, "first", **FORMS[first]).body)}
    for name, form in FORMS.items():
        answers[f"{name} again"] = read(ask(replica, bea, name, **form).body)

    assert [answer["reused"] for answer in answers.values()] == [False, True, True, True]
    assert {tuple(answer["values"]) for answer in answers.values()} == {tuple(answers[first]["values"])}
    assert counts_of(replica) == [(3, 0)]
    assert "estimates" not in answers["linear again"]
    for name in ("variance", "stddev"):
        (row,) = answers[f"{name} again"]["estimates"]["rows"]
        assert row["label"] == {"select": f"{name}(age)"}
    assert findings(store) == []


def test_an_analyst_sees_its_own_form_alone(replica: Replica, ana: Principal) -> None:
    """In the list of releases; the entry and the receipts of individuals have that of the first request."""
    bea = analyst(replica, "bea")
    ask(replica, ana, "a", **FORMS["variance"])
    for name, form in FORMS.items():
        ask(replica, bea, name, **form)
    (mine,) = replica.analysts.releases(ana, cursor=None, limit=9).items
    theirs = replica.analysts.releases(bea, cursor=None, limit=9).items

    assert mine.words == "variance of age in people, at most 25 % of the budget per person"
    assert {release.words.partition(" in people")[0] for release in theirs} == {
        "variance of age",
        "standard deviation of age",
        in_words(theirs[0].query | LINEAR | {"where": None, "from": "people"}).partition(" in people")[0],
    }
    (receipt,) = replica.individuals.receipts(individual_named(replica, "ann"), cursor=None, limit=9).items
    assert receipt.words == mine.words


def test_a_key_is_of_one_form(replica: Replica, ana: Principal) -> None:
    """Its answer has the estimates that were asked for: the linear query is another request."""
    first = ask(replica, ana, "k", **FORMS["variance"])
    assert ask(replica, ana, "k", **FORMS["variance"]).body == first.body
    for other in ("stddev", "linear"):
        with pytest.raises(KeyConflict):
            ask(replica, ana, "k", **FORMS[other])


@pytest.mark.parametrize("form", FORMS)
def test_a_deleted_answer_is_made_again_in_its_form(
    store: MemoryStore, replica: Replica, ana: Principal, form: str
) -> None:
    """The entry has it, whatever forms came later."""
    ask(replica, ana, "k", **FORMS[form])
    for name, other in FORMS.items():
        ask(replica, ana, name, **other)
    (kept,) = store.kept.values()
    row = kept.answers.pop((ana.id, "k"))
    assert rebuild(store, "survey", seq=1, key="k") == row
    assert findings(store) == []


def test_estimates_are_of_the_released_numbers(replica: Replica, ana: Principal) -> None:
    """A mean is worked out from the two sums; a rebuilt answer, a repeated one and a fetched one say the same."""
    asked: dict[str, Any] = {
        "select": [{"mean": {"column": "age"}}, {"count": {}}],
        "noise": {"rho": 0.01},
        "group_by": ["country"],
    }
    answered = ask(replica, ana, "k", **asked)
    found = read(answered.body)
    names = [(label["country"], label["select"]) for label in found["labels"]]
    numbers = dict(zip(names, found["values"], strict=True))
    for row in found["estimates"]["rows"]:
        country, title = row["label"]["country"], row["label"]["select"]
        if title == "count":
            assert row["value"] == numbers[country, "count"]
        else:
            above, ones = numbers[country, "sum((age - 60))"], numbers[country, "sum(clip(age, 1, 1))"]
            assert row["value"] == (min(max(60 + above / ones, 0), 120) if ones else None)
    assert replica.analysts.release(ana, answered.query_id).body == answered.body
