"""Parameters by hash: kept with the first answer that names them, for their analyst alone, and planned again from."""

import hashlib
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import AllowanceExceeded, InvalidRequest, KeyConflict
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.views import Principal
from service.maintenance.rebuild_answer import rebuild
from service.maintenance.verify.report import verify_all
from service.query import model_parameters
from service.query.language import Query
from service.query.parameters_ast import HashedParameters
from service.query.parse import query_of
from service.workflows.queries import submit
from service.workflows.replica import Replica
from service.writer import batch
from tests.factories import analyst, witness_of
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S

THETA = np.array([[0.5, -0.25], [-0.5, 0.125]])
FIELD = "select[0].gradient.parameters"
UNKNOWN = "are not known by this hash; send the numbers"
SPEND = {"of": {"mul": [{"col": "spend"}, 0.002]}}


def digest_of(numbers: NDArray[np.floating]) -> str:
    """The hash as the documentation states it."""
    return hashlib.sha256(numbers.astype("<f8").tobytes()).hexdigest()


def gradient(parameters: Any, **more: Any) -> Query:
    """A softmax step for two countries by one feature and an intercept."""
    model = {"loss": "softmax", "target": "country", "features": [SPEND], "intercept": True, "parameters": parameters}
    return query_of({"version": 1, "select": [{"gradient": model | more}], "noise": {"sigma": 3}})


def sent(numbers: NDArray[np.floating] = THETA) -> Query:
    """The step with its numbers, as an npz brings them."""
    return gradient(HashedParameters.of(numbers))


def named(numbers: NDArray[np.floating] = THETA, **more: Any) -> Query:
    """The step with a hash alone."""
    return gradient({"sha256": digest_of(numbers), **more})


def asked(replica: Replica, who: Principal, key: str, query: Query) -> StoredAnswer:
    """Ask and wait."""
    return replica.analysts.submit(who, "survey", key, query).result(timeout=PATIENCE_S)


def refused(replica: Replica, who: Principal, query: Query, key: str = "refused") -> list[tuple[str, str]]:
    """The fields and messages with which a query and its preview are refused."""
    with pytest.raises(InvalidRequest) as found:
        asked(replica, who, key, query)
    with pytest.raises(InvalidRequest) as previewed:
        replica.analysts.preview(who, "survey", query)
    assert found.value.errors == previewed.value.errors
    return [(each.field, each.message) for each in found.value.errors]


def test_the_canonical_form_has_the_hash_and_the_shape(replica: Replica, ana: Principal) -> None:
    """Little-endian doubles, row by row; floats are the doubles that they are. A list stays a list."""
    preview = replica.analysts.preview(ana, "survey", sent(THETA.astype("<f4")))
    held = preview.canonical["select"][0]["gradient"]["parameters"]  # type: ignore[index]
    assert held == {"sha256": digest_of(THETA), "shape": [2, 2]}
    inline = replica.analysts.preview(ana, "survey", gradient(THETA.tolist()))
    assert inline.canonical["select"][0]["gradient"]["parameters"] == THETA.tolist()  # type: ignore[index]
    assert inline.query_hash != preview.query_hash


def test_the_same_numbers_give_the_same_step(replica: Replica, ana: Principal) -> None:
    """By list or by hash one thing is computed: the same plan but for the text."""
    by_hash = replica.analysts.preview(ana, "survey", sent())
    inline = replica.analysts.preview(ana, "survey", gradient(THETA.tolist()))
    for name in ("dimension", "sigma", "grid", "l2_clip", "worst_case_rho"):
        assert getattr(by_hash, name) == getattr(inline, name)


def test_numbers_that_were_sent_once_need_not_be_sent_again(replica: Replica, ana: Principal) -> None:
    """By the hash alone, and with the shape; under the same key, for reuse, and in a query of its own."""
    first = asked(replica, ana, "a", sent())
    again = asked(replica, ana, "a", named())
    assert again.body == first.body
    reused = orjson.loads(asked(replica, ana, "b", named(shape=[2, 2])).body)
    assert (reused["reused"], reused["sequence"]) == (True, 1)
    other = named().model_copy(update={"noise": sent().noise.model_copy(update={"sigma": 4})})
    assert orjson.loads(asked(replica, ana, "c", other).body)["sequence"] == 2
    assert (
        replica.analysts.preview(ana, "survey", named()).canonical
        == replica.analysts.preview(ana, "survey", sent()).canonical
    )
    with pytest.raises(KeyConflict):
        asked(replica, ana, "a", sent(2 * THETA))


def test_another_analyst_does_not_know_them(replica: Replica, ana: Principal) -> None:
    """A hash that another has sent is as unknown as one that nobody has, and is known once they are sent again."""
    first = asked(replica, ana, "a", sent())
    bo = analyst(replica, "bo")
    assert refused(replica, bo, named()) == refused(replica, bo, named(3 * THETA)) == [(FIELD, UNKNOWN)]
    own = asked(replica, bo, "a", sent())
    assert orjson.loads(own.body)["reused"]
    assert orjson.loads(own.body)["values"] == orjson.loads(first.body)["values"]
    assert asked(replica, bo, "a", named()).body == own.body


def test_numbers_of_a_query_that_was_not_answered_are_not_kept(replica: Replica, ana: Principal) -> None:
    """The query is previewed, or refused."""
    replica.analysts.preview(ana, "survey", sent())
    poor = analyst(replica, "poor", allowance_rho=Decimal(0))
    with pytest.raises(AllowanceExceeded):
        asked(replica, poor, "a", sent())
    for who, query in ((ana, named()), (poor, named())):
        assert refused(replica, who, query) == [(FIELD, UNKNOWN)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (sent(THETA[:, :1]), "must have the shape 2 x 2, and has 2 x 1, of 2 numbers"),
        (sent(THETA.ravel()), "must have the shape 2 x 2, and has 4, of 4 numbers"),
        (sent(np.array([[1e31, 0], [0, 0]])), "must be numbers from -1e+30 to 1e+30"),
        (sent(np.array([[np.nan, 0], [0, 0]])), "must be numbers from -1e+30 to 1e+30"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(replica: Replica, ana: Principal, query: Query, message: str) -> None:
    """The field is named, and nothing is kept."""
    assert refused(replica, ana, query) == [(FIELD, message)]


def test_a_hash_fits_the_shape_that_is_asked_for(replica: Replica, ana: Principal) -> None:
    """The kept shape stands where none is given; another of as many numbers may be."""
    asked(replica, ana, "a", sent())
    assert refused(replica, ana, named(shape=[4])) == [(FIELD, "must have the shape 2 x 2, and has 4, of 4 numbers")]
    assert refused(replica, ana, named(shape=[2, 3])) == [
        (FIELD, "must have the shape 2 x 2, and has 2 x 3, of 4 numbers")
    ]


def test_entries_are_planned_again_from_what_is_kept(replica: Replica, ana: Principal, store: MemoryStore) -> None:
    """A verification names what is missing or changed, and an answer is rebuilt."""
    first = asked(replica, ana, "a", sent())
    asked(replica, analyst(replica, "bo"), "a", sent())
    (report,) = verify_all(store, witness_of(store))
    assert report.findings == []
    kept = store.kept[1]
    del kept.answers[ana.id, "a"]
    rebuilt = rebuild(store, "survey", seq=1, key="a")
    assert rebuilt is not None
    assert rebuilt.body == first.body
    kept = store.kept[1]
    place = ana.id, digest_of(THETA)
    numbers = kept.parameters.pop(place)
    (missing,) = verify_all(store, witness_of(store))
    assert f"parameters row {place[1]} of {ana.id}: is missing, and ledger row 1 names it" in missing.findings
    kept.parameters[place] = replace(numbers, numbers=bytes(32))
    (found,) = verify_all(store, witness_of(store))
    assert f"parameters row {place[1]} of {ana.id}: its numbers do not give its hash" in found.findings


def predicted(parameters: Any, **more: Any) -> dict[str, Any]:
    """The likeliest country by one feature and an intercept."""
    model = {"link": "softmax", "target": "country", "features": [SPEND], "intercept": True, "parameters": parameters}
    return {"predict": model | more}


def counted(*values: dict[str, Any], **more: Any) -> Query:
    """A count of those whose predictions are all their country."""
    where = {"and": [{"eq": [value, {"col": "country"}]} for value in values]}
    return query_of({"version": 1, "select": [{"count": {}}], "where": where, "noise": {"sigma": 3}} | more)


def by_hash(numbers: NDArray[np.floating] = THETA) -> dict[str, str]:
    """The hash of numbers."""
    return {"sha256": digest_of(numbers)}


PREDICTED = "where.and[{}].eq[0].predict.parameters"
PROBABILITY = {"predict": {"link": "logistic", "features": [SPEND], "intercept": True, "parameters": "@"}}
ROW = np.array([0.5, -0.25])


@pytest.mark.parametrize(
    "query",
    [
        {"select": [{"sum": {"of": PROBABILITY}}]},
        {"select": [{"count": {}}], "group_by": [{"bin": {"of": PROBABILITY, "width": 0.5}}]},
        {
            "select": [
                {
                    "gradient": {
                        "loss": "squared",
                        "residual_clip": 1,
                        "target": PROBABILITY,
                        "features": [{"of": PROBABILITY, "fill": 0}],
                        "intercept": True,
                        "parameters": "@",
                    }
                }
            ],
            "where": {"not": {"or": [{"lt": [PROBABILITY, 0.1]}]}},
        },
    ],
    ids=["sum", "bin", "target and feature"],
)
def test_a_prediction_has_its_parameters_by_hash_wherever_it_stands(
    replica: Replica, ana: Principal, store: MemoryStore, query: dict[str, Any]
) -> None:
    """Sent once, and by the hash alone from then on; what is computed is what the list says."""

    def asked_with(parameters: Any) -> Query:
        return query_of(filled({"version": 1, "noise": {"sigma": 3}} | query, parameters))

    first = asked(replica, ana, "a", asked_with(HashedParameters.of(ROW)))
    assert asked(replica, ana, "a", asked_with(by_hash(ROW))).body == first.body
    one, other = (replica.analysts.preview(ana, "survey", asked_with(each)) for each in (by_hash(ROW), ROW.tolist()))
    for name in ("dimension", "sigma", "grid", "l2_clip", "worst_case_rho"):
        assert getattr(one, name) == getattr(other, name)
    (report,) = verify_all(store, witness_of(store))
    assert report.findings == []


def filled(part: Any, parameters: Any) -> Any:
    """A document with parameters in their places."""
    if isinstance(part, dict):
        return {key: filled(each, parameters) for key, each in part.items()}
    if isinstance(part, list):
        return [filled(each, parameters) for each in part]
    return parameters if part == "@" else part


def test_a_query_may_name_several_arrays(replica: Replica, ana: Principal, store: MemoryStore) -> None:
    """Each is kept and found by itself, and the one that is not known is named by its place."""
    both = counted(predicted(HashedParameters.of(THETA)), predicted(HashedParameters.of(2 * THETA)))
    first = asked(replica, ana, "a", both)
    again = counted(predicted(by_hash()), predicted(by_hash(2 * THETA)))
    assert asked(replica, ana, "a", again).body == first.body
    kept = store.kept[1]
    assert {digest for _, digest in kept.parameters} == {digest_of(THETA), digest_of(2 * THETA)}
    other = counted(predicted(by_hash()), predicted(by_hash(3 * THETA)))
    assert refused(replica, ana, other) == [(PREDICTED.format(1), UNKNOWN)]
    assert refused(replica, analyst(replica, "bo"), again) == [(PREDICTED.format(0), UNKNOWN)]
    mixed = counted(predicted(by_hash()), predicted(HashedParameters.of(3 * THETA)))
    asked(replica, ana, "b", mixed)
    kept = store.kept[1]
    del kept.parameters[ana.id, digest_of(2 * THETA)]
    (missing,) = verify_all(store, witness_of(store))
    name = f"parameters row {digest_of(2 * THETA)} of {ana.id}"
    assert missing.findings == [
        f"{name}: is missing, and ledger row 1 names it",
        f"answers row 'a' of {ana.id}: ledger row 1 has no query that can be planned",
    ]


def test_a_query_names_a_bounded_number_of_arrays(
    replica: Replica, ana: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And they have a bounded number of numbers together, of all queries of a unit too."""
    many = [predicted(HashedParameters.of(n * THETA)) for n in range(1, 10)]
    asked(replica, ana, "a", counted(*many[:8]))
    assert refused(replica, ana, counted(*many)) == [("body", "names more than 8 arrays of parameters by their hashes")]
    asked(replica, ana, "b", counted(many[8]))
    assert refused(replica, ana, counted(*(predicted(by_hash(n * THETA)) for n in range(1, 10)))) == [
        ("body", "names more than 8 arrays of parameters by their hashes")
    ]
    with monkeypatch.context() as patch:
        patch.setattr(model_parameters, "PARAMETERS_MAX", 6)
        assert refused(replica, ana, counted(*many[:2])) == [("body", "names more than 6 parameters by their hashes")]
    monkeypatch.setattr(submit, "UNIT_PARAMETERS_MAX", 8)
    unit = [("c", counted(predicted(by_hash()))), ("d", counted(predicted(by_hash(2 * THETA))))]
    assert len(replica.analysts.submit_all(ana, "survey", unit)) == 2
    with pytest.raises(InvalidRequest) as found:
        replica.analysts.submit_all(ana, "survey", [*unit, ("e", sent())])
    assert [each.field for each in found.value.errors] == ["queries"]


def test_a_query_that_names_a_hash_is_not_submitted_at_once(replica: Replica) -> None:
    """Its numbers are read from the database; lists need no round trip."""
    at_once = replica.analysts.submits_at_once
    assert not at_once("survey", named())
    assert not at_once("survey", counted(predicted(by_hash())))
    assert at_once("survey", gradient(THETA.tolist()))
    assert at_once("survey", counted(predicted(THETA.tolist())))


def test_numbers_are_sent_to_the_store_once(replica: Replica, ana: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query by a hash alone writes none, and neither does one under a key that is answered."""
    written: list[str] = []

    def noted(**row: Any) -> KeptParameters:
        written.append(row["sha256"])
        return KeptParameters(**row)

    monkeypatch.setattr(batch, "KeptParameters", noted)
    asked(replica, ana, "a", sent())
    asked(replica, ana, "b", named())
    asked(replica, ana, "a", sent())
    assert written == [digest_of(THETA)]
