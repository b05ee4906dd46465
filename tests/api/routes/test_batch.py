"""Many queries in one request."""

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.routes.batch import ENTRIES_MAX, parse_batch
from service.ledger.model.errors import InvalidRequest
from service.query.json_text import DEPTH_MAX
from service.query.parse import parse_query
from service.query.problems import QueryProblem
from tests.api.world import COUNT, World, build_world
from tests.factories import REJECTED_SIGMA, RejectingStore

PATH = "/v1/datasets/care/queries/batch"


def batch(*entries: tuple[str, bytes]) -> bytes:
    """The body of a batch of (key, query)."""
    return (
        b'{"queries":['
        + b",".join(b'{"idempotency_key":"%s","query":%s}' % (k.encode(), q) for k, q in entries)
        + b"]}"
    )


def count(sigma: int) -> bytes:
    """A count with this noise."""
    return COUNT.replace(b"20.0", b"%d" % sigma)


class TestAnswers:
    """The responses to a batch."""

    async def test_each_entry_is_answered_in_its_place(self, world: World) -> None:
        """Byte for byte what the single query gives, in order, one after the other in the ledger."""
        queries = [(f"k{number}", count(30 + number)) for number in range(ENTRIES_MAX)]
        response = await world.call("analyst", "POST", PATH, content=batch(*queries))
        singles = [(await world.ask(key, query)).content for key, query in queries]
        assert response.status_code == 200
        assert response.content == b'{"answers":[' + b",".join(singles) + b"]}"
        assert [answer["sequence"] for answer in response.json()["answers"]] == list(range(2, ENTRIES_MAX + 2))

    async def test_one_bad_entry_leaves_the_others_alone(self, world: World) -> None:
        """A problem takes its place."""
        body = (
            b'{"queries":[{"idempotency_key":"a","query":%s},{"query":%s},{"idempotency_key":7,"query":{}},'
            b'{"idempotency_key":"b","query":{"version":1,"version":1}},{"idempotency_key":"c","query":[NaN]},'
            b'{"idempotency_key":"first","query":%s},{"idempotency_key":"d","query":%s}]}'
        ) % (count(30), count(31), count(32), count(33))
        response = await world.call("analyst", "POST", PATH, content=body, headers={"X-Request-Id": "r"})
        answers = response.json()["answers"]
        assert [answer.get("type", "answer").rsplit(":", 1)[-1] for answer in answers] == [
            "answer",
            "idempotency-key-missing",
            "idempotency-key-invalid",
            "invalid-request",
            "invalid-request",
            "idempotency-key-reused",
            "answer",
        ]
        assert {answer["request_id"] for answer in answers if "type" in answer} == {"r"}
        assert "twice" in answers[3]["detail"]

    async def test_an_incident_before_admission_is_the_requests(
        self, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The entries are one unit: one 500, and its text goes nowhere."""

        def explode(*_: Any) -> None:
            raise RuntimeError("Kari, 42")

        monkeypatch.setattr(world.replica.analysts, "submit_all", explode)
        response = await world.call("analyst", "POST", PATH, content=batch(("a", COUNT)))
        assert (response.status_code, response.json()["type"]) == (500, "urn:sparing:problem:internal-error")
        assert "RuntimeError" in caplog.text
        assert "Kari" not in caplog.text + response.text

    async def test_a_unit_for_which_there_is_no_room_is_refused_as_a_whole(self, world: World) -> None:
        """By its public memory alone, with both numbers; each of its queries would have been admitted."""
        world.replica.admission.memory.bytes_max = 1_600_000
        queries = [(f"k{number}", count(30 + number)) for number in range(ENTRIES_MAX)]
        response = await world.call("analyst", "POST", PATH, content=batch(*queries))
        assert (response.status_code, response.json()["type"]) == (422, "urn:sparing:problem:invalid-request")
        assert re.search(r"need [0-9]{6,} bytes .* have 800000;", response.json()["detail"])
        assert (await world.ask(*queries[0])).json()["sequence"] == 2

    async def test_what_the_store_rejects_is_one_entrys(self, caplog: pytest.LogCaptureFixture) -> None:
        """Its neighbours are answered; alone it is the same 500, and the log has the request's id and the code."""
        world = build_world(store=RejectingStore())
        rejected = count(int(REJECTED_SIGMA))
        response = await world.call(
            "analyst", "POST", PATH, content=batch(("a", count(30)), ("b", rejected), ("c", count(31)))
        )
        first, refused, last = response.json()["answers"]
        assert {first["sequence"], last["sequence"]} == {2, 3}
        assert (refused["type"], refused["status"]) == ("urn:sparing:problem:internal-error", 500)
        caplog.clear()
        alone = await world.ask("d", rejected, headers={"X-Request-Id": "r7"})
        assert (alone.status_code, alone.json()["type"]) == (500, "urn:sparing:problem:internal-error")
        assert "Retry-After" not in alone.headers
        assert "code=23514" in caplog.text
        assert "request_id=r7 error=service.ledger.ports.store.CommitRejected" in caplog.text
        await world.close()


class TestEnvelope:
    """The form of a batch."""

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (b"", "body"),
            (b"{", "body"),
            (b"\xff", "body"),
            (b"[" * 100_000, "body"),
            (b"[]", "queries"),
            (b"{}", "queries"),
            (b'{"queries":{}}', "queries"),
            (b'{"queries":[]}', "queries"),
            (b'{"queries":[],"queries":[]}', "body"),
            (b'{"queries":[{"query":1}],"x":1}', "x"),
            (b'{"queries":[1]}', "queries[0]"),
            (b'{"queries":[{"query":1},{}]}', "queries[1]"),
            (b'{"queries":[{"query":1,"x":1}]}', "queries[0]"),
            (b'{"queries":[{"query":1,"query":1}]}', "queries[0]"),
            (b'{"queries":[{"query":' + b"[" * 400 + b"]" * 400 + b"}]}", "body"),
            (b'{"queries":[' + b",".join([b'{"query":1}'] * (ENTRIES_MAX + 1)) + b"]}", "queries"),
        ],
    )
    def test_what_is_no_batch_is_refused_by_field(self, body: bytes, field: str) -> None:
        """A batch is refused as a whole, before any entry is asked."""
        with pytest.raises((InvalidRequest, QueryProblem)) as refused:
            parse_batch(body)
        assert str(refused.value).split(": ")[0] == field

    def test_a_query_in_a_batch_may_be_as_deep_as_alone(self) -> None:
        """Its envelope is not its own nesting."""
        lists = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX
        (entry,) = parse_batch(b'{"queries":[{"query":%s}]}' % lists)
        assert str(entry.query) == "body: must be an object"
        with pytest.raises(QueryProblem, match="nested"):
            parse_batch(b'{"queries":[{"query":[%s]}]}' % lists)

    def test_text_that_is_none_is_its_entrys(self) -> None:
        """And the field is within the query."""
        one, two = parse_batch(b'{"queries":[{"query":{"from":"\\ud800"}},{"query":%s}]}' % COUNT)
        assert str(one.query) == "from: has half of a surrogate pair, which is not text"
        assert two.query == parse_query(COUNT)

    @given(sigma=st.floats(min_value=1, max_value=1e6), key=st.text(max_size=20))
    def test_a_query_means_in_a_batch_what_it_means_alone(self, sigma: float, key: str) -> None:
        """For every number and every key."""
        query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}}
        body = json.dumps({"queries": [{"idempotency_key": key, "query": query}]})
        (entry,) = parse_batch(body.encode())
        assert entry.key == key
        assert entry.query == parse_query(json.dumps(query).encode())

    @given(body=st.binary(max_size=200))
    def test_no_bytes_at_all_make_it_fail(self, body: bytes) -> None:
        """Entries or a refusal, nothing else."""
        with suppress(InvalidRequest, QueryProblem):
            assert parse_batch(body)
