"""Many parameters: sent as an array once, by their hash from then on, and as an array again where that is unknown."""

import hashlib
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import InvalidRequestError, count, fold, gradient, one_hot, predict, vector
from sparing import _parameters as parameters_module
from sparing._npz import query_of_npz
from sparing._parameters import KnownHashes, many_in
from sparing._query import question_json
from sparing._rooms.fake import QueryProblem
from sparing._testing_parameters import KeptParameters, json_in
from sparing.learn import LogisticRegression
from sparing.testing import FakeService

FEW = 100
SIZE = FEW + 1
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "shop": {"type": "category", "size": SIZE},
            "member": {"type": "boolean"},
            "town": {"type": "category", "categories": ["Oslo", "Bergen"]},
        },
    }
}
PEOPLE = [{"person_id": n, "shop": n, "member": n % 2 == 0, "town": "Oslo"} for n in range(40)]
THETA = np.linspace(-1, 1, SIZE)


@pytest.fixture(scope="module", autouse=True)
def _are_few_in_json() -> Iterator[None]:
    """A hundred numbers are many already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters_module, "IN_JSON_MAX", FEW)
        yield


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeService]:
    """A service, and a process that knows no hash."""
    monkeypatch.setattr("sparing._verbs.queries.KNOWN", KnownHashes())
    with FakeService() as made:
        made.add_dataset("club", TABLES, rows={"people": PEOPLE}, rho=10_000, capacity=100)
        yield made


def step(parameters: Any = THETA) -> Any:
    """A logistic step with a feature for each shop."""
    return gradient("logistic", target="member", features=[one_hot("shop")], parameters=parameters)


def document(item: Any) -> dict[str, Any]:
    """A query as it would be sent in JSON."""
    return question_json({"dataset": "club", "select": item, "sigma": 3})


def sent(fake: FakeService) -> list[str]:
    """The form of the parameters of each query, as it came."""
    found = []
    for each in fake.requests:
        given = each.json["select"][0]["gradient"]["parameters"]
        found.append("hash" if isinstance(given, dict) else "numbers")
    return found


def test_few_parameters_stay_in_json() -> None:
    """JSON holds them, and whatever is no rectangle of numbers, which the service refuses."""
    assert many_in(document(step(THETA[:-1]))) is None
    assert many_in(document(count())) is None
    for wrong in ([[1.0] * SIZE, [1.0]], ["x"] * SIZE, [True] * SIZE, [[[0.0]]] * SIZE):
        query = document(step())
        query["select"][0]["gradient"]["parameters"] = wrong
        assert many_in(query) is None


@given(st.sampled_from([(SIZE,), (2, 600), (1, SIZE), (SIZE, 1)]), st.floats(-1e30, 1e30))
def test_the_body_is_one_that_numpy_reads(shape: tuple[int, ...], number: float) -> None:
    """The text of the query, and the doubles in their shape; the hash is that of the documentation."""
    theta = np.full(shape, number)
    many = many_in(document(step(theta)))
    assert many is not None
    with np.load(io.BytesIO(many.npz)) as arrays:
        assert np.array_equal(arrays["parameters"], theta)
        assert json.loads(str(arrays["query"]))["select"][0]["gradient"]["parameters"] == "@parameters"
    digest = hashlib.sha256(theta.astype("<f8").tobytes()).hexdigest()
    assert many.by_hash["select"][0]["gradient"]["parameters"] == {"sha256": digest, "shape": list(shape)}
    assert query_of_npz(many.npz)[1] == {"parameters": (shape, theta.tobytes())}


def test_numbers_are_sent_once(fake: FakeService) -> None:
    """Under the same key and another: the answers are those that the numbers get."""
    client = fake.client()
    first = client.queries.ask(dataset="club", select=step(), sigma=3, idempotency_key="a")
    again = client.queries.ask(dataset="club", select=step(), sigma=3, idempotency_key="a")
    other = client.queries.ask(dataset="club", select=step(), sigma=4)
    assert sent(fake) == ["numbers", "hash", "hash"]
    assert again == first
    assert other.sequence == 2
    assert fake.queries[0] == document(step()) | {"noise": {"sigma": 3}}


def test_what_the_service_does_not_know_is_sent_again(fake: FakeService) -> None:
    """Another analyst's hash; announced once. A preview makes nothing known."""
    told: list[Any] = []
    fake.client().queries.preview(dataset="club", select=step(), sigma=3)
    fake.client(api_key=fake.add_analyst()).queries.ask(dataset="club", select=step(), sigma=3)
    other = fake.client(api_key=fake.add_analyst(), before_sending=lambda *each: told.append(each[1]))
    answer = other.queries.ask(dataset="club", select=step(), sigma=5, idempotency_key="k")
    assert sent(fake) == ["numbers", "numbers", "hash", "numbers"]
    assert answer.sequence == 2
    assert told == ["k"]
    other.queries.ask(dataset="club", select=step(), sigma=6)
    assert sent(fake)[4:] == ["hash"]


def test_another_refusal_is_raised(fake: FakeService) -> None:
    """Refusals of a query by its hash, and of one with its numbers."""
    client = fake.client()
    client.queries.ask(dataset="club", select=step(), sigma=3)
    with pytest.raises(InvalidRequestError, match=r"noise\.sigma"):
        client.queries.ask(dataset="club", select=step(), sigma=1e30)
    with pytest.raises(InvalidRequestError, match="must have the shape"):
        client.queries.ask(dataset="club", select=step(THETA.repeat(2)), sigma=3)


def test_the_process_remembers_some_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last ones."""
    monkeypatch.setattr(parameters_module, "_KNOWN_MAX", 2)
    known = KnownHashes()
    for sha256 in "abc":
        known.add(("club", sha256))
    assert [("club", sha256) in known for sha256 in "abc"] == [False, True, True]
    known.pop(("club", "b"), None)
    assert ("club", "b") not in known


@pytest.mark.filterwarnings("ignore:No more than noise")
@pytest.mark.filterwarnings("ignore:The descent has not settled")
def test_a_fit_with_many_parameters_is_run_again_without_a_charge(fake: FakeService) -> None:
    """Its steps go as arrays, and by their hashes when it is run again."""
    client = fake.client()
    model = LogisticRegression([one_hot("shop")], "member", fit_intercept=False, max_iter=2, l2_clip=1)
    first = model.fit(client.dataset("club"), share=0.2, run="r").coef_
    again = model.fit(client.dataset("club"), share=0.2, run="r").coef_
    assert np.array_equal(first, again)
    steps = [each["select"][0]["gradient"] for each in fake.queries if "gradient" in each["select"][0]]
    assert ["hash" if isinstance(each["parameters"], dict) else "numbers" for each in steps] == [
        *["numbers"] * 2,
        *["hash"] * 2,
    ]


def likely(parameters: Any, **more: Any) -> Any:
    """The probability of a member by its shop."""
    return predict([one_hot("shop")], parameters, **more)


def judged(fake: FakeService, condition: Any, *, key: str) -> int:
    """The sequence of a count of those for whom a condition holds."""
    query = fake.client().dataset("club").query().where(condition).count().noise(sigma=3)
    return query.run(idempotency_key=key).sequence


def test_predictions_have_their_parameters_by_hash_wherever_they_stand(fake: FakeService) -> None:
    """Sent once each; another array in the query, and all are sent again."""
    towns = likely(np.stack([THETA, -THETA]), link="softmax", target="town")
    condition = (likely(THETA) >= 0.5) & ~towns.is_null() & (likely(THETA) < 2)
    assert judged(fake, condition, key="a") == judged(fake, condition, key="a") == 1
    assert judged(fake, condition & (likely([0.5] * SIZE) >= 0), key="b") == 2
    bodies = [each.json["where"]["and"][0]["ge"][0]["predict"]["parameters"] for each in fake.requests]
    assert ["hash" if isinstance(each, dict) else "numbers" for each in bodies] == ["numbers", "hash", "numbers"]
    with pytest.raises(InvalidRequestError, match=f"must have {SIZE} numbers"):
        judged(fake, likely([1.0] * 3) < 2, key="c")


def test_the_numbers_of_a_model_are_in_the_body_once() -> None:
    """However often it is mentioned; a list of literals is no part of it."""
    query = question_json(
        {
            "dataset": "club",
            "select": count(),
            "where": (likely(THETA) >= 0.5) & (likely(THETA) < 0.9) & (likely(-THETA) < 0.9),
            "sigma": 3,
        }
    )
    many = many_in(query)
    assert many is not None
    with np.load(io.BytesIO(many.npz)) as arrays:
        assert sorted(arrays) == ["parameters", "parameters1", "query"]
    assert len(set(many.hashes)) == 2
    assert json_in(many.npz) == query


def test_the_fake_reads_the_npz_of_the_client_alone() -> None:
    """Any other zip is refused, and the body is named."""
    with pytest.raises(QueryProblem) as problem:
        KeptParameters().query_in("club", b"PK nothing")
    assert problem.value.errors[0].field == "body"
    assert json_in(b"PK nothing") is None


@pytest.mark.filterwarnings("ignore:No more than noise")
@pytest.mark.filterwarnings("ignore:The descent has not settled")
def test_a_model_of_vectors_is_judged_by_arrays_and_hashes(fake: FakeService) -> None:
    """A model of several classes, fitted and evaluated through vectors of more numbers than JSON is sent with."""
    rng, columns = np.random.default_rng(5), {"image": {"type": "vector", "length": 400, "lower": 0, "upper": 15}}
    digits = rng.integers(0, 3, 300)
    images = np.zeros((300, 400), dtype=int)
    for digit in range(3):
        images[digits == digit, 100 * digit : 100 * digit + 100] = 15
    columns["digit"] = {"type": "category", "size": 3}
    rows = [
        {"person_id": n, "image": image, "digit": digit}
        for n, (image, digit) in enumerate(zip(images.tolist(), digits.tolist(), strict=True))
    ]
    tables = {"people": {"kind": "individuals", "key": "person_id", "columns": columns}}
    fake.add_dataset("digits", tables, rows={"people": rows}, rho=10_000, capacity=1000)
    client = fake.client()
    model = LogisticRegression([vector("image")], "digit", max_iter=2)
    model.fit(client.dataset("digits"), where=~fold("d", of=3, parts=[0]), share=0.2)
    found = model.evaluate(client.dataset("digits"), where=fold("d", of=3, parts=[0]), share=0.2)
    right = model.predict({"image": images}) == digits
    assert right.mean() > 0.9
    assert found.accuracy > 0.9
    predicted = [str(each.json["where"]) for each in fake.requests[-2:]]
    assert ["sha256" in each for each in predicted] == [False, True]
