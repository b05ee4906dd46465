"""The analyst's calls."""

import io
import json
from dataclasses import replace
from decimal import Decimal
from unittest.mock import ANY

import numpy as np
import orjson
import pyarrow as pa
import pytest

from service.query.schema import Schema
from tests.api.world import COUNT, TABLES, World

HISTOGRAM = b'{"version":1,"select":[{"histogram":{"column":"country"}}],"noise":{"sigma":20.5}}'
SUM = b'{"version":1,"select":[{"sum":{"column":"age"}}],"per_individual":{"l2_clip":50.5},"noise":{"sigma":100.0}}'
ANSWER = {
    "id",
    "sequence",
    "values",
    "labels",
    "sigma",
    "grid",
    "dimension",
    "half_width_95",
    "worst_case_rho",
    "coverage_certified",
    "reused",
    "epoch",
    "released_at",
}


class TestAsk:
    """One query."""

    async def test_the_answer_has_the_members_of_the_contract(self, world: World) -> None:
        """In JSON, with the id in a header too."""
        response = await world.ask("k", HISTOGRAM)
        answer = response.json()
        assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
        assert set(answer) >= ANSWER
        assert (answer["dimension"], len(answer["values"]), answer["sigma"]) == (2, 2, 20.5)
        assert response.headers["x-query-id"] == answer["id"]

    async def test_the_same_key_gives_the_same_bytes(self, world: World) -> None:
        """For every spelling of the same query, and without a second charge."""
        first = await world.ask("k", HISTOGRAM)
        spelled = json.dumps(json.loads(HISTOGRAM), indent=2).encode()
        for body in (HISTOGRAM, spelled):
            again = await world.ask("k", body)
            assert again.content == first.content
            assert again.headers["content-length"] == first.headers["content-length"]
        assert (await world.call("curator", "GET", "/v1/datasets/care")).json()["sequence"] == 2

    async def test_a_key_that_was_answered_replays_what_is_refused_today(self, world: World) -> None:
        """By itself and in a batch, in every form; under another key the same query is a 422 naming its field."""
        kept_before = world.replica.admission.memory.kept_bytes
        first = await world.ask("k", SUM)
        record = world.replica.registry.record("care")
        tables = {name: dict(table) for name, table in TABLES.items()}
        tables["people"]["columns"] = {"country": TABLES["people"]["columns"]["country"]}
        state = world.replica.registry.writer(record).committer.state
        state.record = replace(record, schema=Schema.model_validate(tables))
        again = await world.ask("k", SUM)
        assert (again.status_code, again.content) == (200, first.content)
        npy = await world.ask("k", SUM, headers={"Accept": "application/x-npy"})
        assert np.load(io.BytesIO(npy.content)).tolist() == first.json()["values"]
        refused = await world.ask("l", SUM)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "select[0].sum.column")
        entries = ",".join(f'{{"idempotency_key":"{key}","query":{SUM.decode()}}}' for key in ("k", "l"))
        path = "/v1/datasets/care/queries/batch"
        response = await world.call("analyst", "POST", path, content=f'{{"queries":[{entries}]}}'.encode())
        assert response.json()["answers"] == [first.json(), refused.json() | {"request_id": ANY}]
        entries = f'{entries},{{"idempotency_key":"m","query":{COUNT.decode()}}}'
        mixed = await world.call("analyst", "POST", path, content=f'{{"queries":[{entries}]}}'.encode())
        assert [each.get("status", 200) for each in mixed.json()["answers"]] == [200, 422, 200]
        assert world.replica.admission.memory.kept_bytes == kept_before

    async def test_the_same_query_under_another_key_is_reused(self, world: World) -> None:
        """The released values again, at no charge, unless fresh noise is asked for."""
        first = (await world.ask("k1", HISTOGRAM)).json()
        again = (await world.ask("k2", HISTOGRAM)).json()
        fresh = (await world.ask("k3", HISTOGRAM.replace(b"{", b'{"reuse":false,', 1))).json()
        assert (again["reused"], again["values"], again["id"]) == (True, first["values"], first["id"])
        assert (fresh["reused"], fresh["id"] == first["id"]) == (False, False)

    async def test_another_query_under_the_same_key_is_refused(self, world: World) -> None:
        """422, and the key keeps its answer."""
        first = await world.ask("k", HISTOGRAM)
        refused = await world.ask("k", SUM)
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:sparing:problem:idempotency-key-reused")
        assert (await world.ask("k", HISTOGRAM)).content == first.content

    async def test_another_analysts_key_is_as_good_as_unknown(self, world: World) -> None:
        """Two analysts may choose the same word."""
        world.enrol("other", "analyst")
        await world.ask("k", HISTOGRAM)
        headers = {"Idempotency-Key": "k"}
        response = await world.call("other", "POST", "/v1/datasets/care/queries", headers=headers, content=SUM)
        assert response.status_code == 200

    @pytest.mark.parametrize("key", ["", " ", "\t"])
    async def test_a_query_without_a_key_is_refused(self, world: World, key: str) -> None:
        """400, whatever the body."""
        for body in (COUNT, b"{"):
            response = await world.ask(key, body)
            assert (response.status_code, response.json()["type"]) == (
                400,
                "urn:sparing:problem:idempotency-key-missing",
            )

    @pytest.mark.parametrize("key", ["x" * 129, "é", "a\tb", "a\x7f"])
    async def test_a_key_that_is_none_is_refused(self, world: World, key: str) -> None:
        """1 to 128 printable ASCII characters."""
        sent = {"Idempotency-Key": key.encode("latin-1")}
        response = await world.call("analyst", "POST", "/v1/datasets/care/queries", headers=sent, content=COUNT)  # type: ignore[arg-type]
        assert (response.status_code, response.json()["type"]) == (400, "urn:sparing:problem:idempotency-key-invalid")
        assert (await world.ask("x" * 128)).status_code == 200

    async def test_two_keys_are_none(self, world: World) -> None:
        """Which would it be?"""
        headers = [
            ("Idempotency-Key", "a"),
            ("Idempotency-Key", "b"),
            ("Authorization", f"Bearer {world.keys['analyst']}"),
        ]
        response = await world.client.post("/v1/datasets/care/queries", headers=headers, content=COUNT)
        assert (response.status_code, response.json()["type"]) == (400, "urn:sparing:problem:idempotency-key-invalid")

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (b"", "body"),
            (b"{", "body"),
            (b"[]", "body"),
            (b"\xff", "body"),
            (b'{"version":1,"select":[]}', "select"),
            (COUNT.replace(b"20.0", b"-1"), "noise.sigma"),
            (COUNT.replace(b"20.0", b"NaN"), "noise.sigma"),
            (COUNT.replace(b"20.0", b"1e400"), "noise.sigma"),
            (COUNT.replace(b"{", b'{"extra":1,', 1), "extra"),
            (SUM.replace(b"age", b"wage"), "select[0].sum.column"),
        ],
    )
    async def test_what_is_wrong_is_named(self, world: World, body: bytes, field: str) -> None:
        """From the request and the public schema alone; the key stays free."""
        response = await world.ask("k", body)
        assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")
        assert response.json()["errors"][0]["field"] == field
        assert (await world.ask("k")).status_code == 200

    async def test_the_allowance_is_public_and_final(self, world: World) -> None:
        """403 when the worst case would pass it; the refusal takes no key and charges no individual."""
        world.enrol("poor", "analyst", allowance_rho=Decimal("0.002"))
        path = "/v1/datasets/care/queries"
        codes = []
        for number in range(2):
            body = COUNT.replace(b"20.0", b"%d" % (20 + number)).replace(b"{", b'{"reuse":false,', 1)
            response = await world.call("poor", "POST", path, headers={"Idempotency-Key": f"k{number}"}, content=body)
            codes.append(response.status_code)
        assert codes == [200, 403]
        assert response.json()["type"] == "urn:sparing:problem:allowance-exceeded"


class TestForms:
    """An answer in binary."""

    async def test_npy_and_arrow_show_the_released_values(self, world: World) -> None:
        """The same numbers as the JSON, and the id in a header."""
        shown = (await world.ask("k", SUM)).json()
        npy = await world.ask("k", SUM, headers={"Accept": "application/x-npy"})
        arrow = await world.ask("k", SUM, headers={"Accept": "application/vnd.apache.arrow.stream"})
        assert np.load(io.BytesIO(npy.content), allow_pickle=False).tolist() == shown["values"]
        table = pa.ipc.open_stream(arrow.content).read_all()
        assert table["value"].to_pylist() == shown["values"]
        assert {npy.headers["x-query-id"], arrow.headers["x-query-id"]} == {shown["id"]}
        assert npy.headers["content-type"] == "application/x-npy"
        assert arrow.headers["content-type"] == "application/vnd.apache.arrow.stream"

    async def test_a_refusal_is_a_problem_in_any_form(self, world: World) -> None:
        """Errors have one shape."""
        response = await world.ask("k", b"{", headers={"Accept": "application/x-npy"})
        assert response.headers["content-type"] == "application/problem+json"


class TestPreview:
    """Everything public, before it costs anything."""

    async def test_a_preview_charges_no_individual(self, world: World) -> None:
        """It needs no key and moves no sequence."""
        response = await world.call("analyst", "POST", "/v1/datasets/care/queries/preview", content=HISTOGRAM)
        preview = response.json()
        assert (response.status_code, preview["dimension"], preview["sigma"], preview["grid"]) == (200, 2, 20.5, 1.0)
        assert (await world.call("curator", "GET", "/v1/datasets/care")).json()["sequence"] == 1

    async def test_it_promises_what_the_answer_keeps(self, world: World) -> None:
        """Dimension, grid, sigma, half width and worst case."""
        preview = (await world.call("analyst", "POST", "/v1/datasets/care/queries/preview", content=SUM)).json()
        answer = (await world.ask("k", SUM)).json()
        promised = ("dimension", "grid", "sigma", "half_width_95", "worst_case_rho")
        for name in (*promised, "worst_case_share", "largest_countable_norm", "warnings"):
            assert preview[name] == answer[name]

    async def test_it_states_the_worst_case_in_every_unit(self, world: World) -> None:
        """As rho, and as a share of the budget."""
        path = "/v1/datasets/care/queries/preview"
        body = orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"share": 0.25}})
        preview = (await world.call("analyst", "POST", path, content=body)).json()
        dataset = (await world.call("analyst", "GET", "/v1/datasets/care")).json()
        assert preview["worst_case_share"] == pytest.approx(0.25, rel=1e-6)
        assert float(preview["worst_case_rho"]) == pytest.approx(0.25 * float(dataset["budget_rho"]), rel=1e-6)
        assert preview["warnings"] == []
        loud = orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 0.5}})
        preview = (await world.call("analyst", "POST", path, content=loud)).json()
        assert preview["largest_countable_norm"] < 1
        assert "individuals with longer vectors are left out" in preview["warnings"][0]

    async def test_a_curator_previews_its_own_dataset_as_an_analyst_does(self, world: World) -> None:
        """The same bytes but for the allowance, which a curator does not have."""
        world.enrol("bound", "curator", dataset="care")
        path = "/v1/datasets/care/queries/preview"
        analyst, curator, bound = [
            (await world.call(role, "POST", path, content=SUM)).json() for role in ("analyst", "curator", "bound")
        ]
        assert curator == bound == analyst | {"allowance_left_rho": None}
        await world.call("curator", "POST", "/v1/datasets", json=_other())
        world.enrol("elsewhere", "curator", dataset="other")
        assert (await world.call("elsewhere", "POST", path, content=SUM)).status_code == 404

    async def test_what_is_wrong_is_named(self, world: World) -> None:
        """As it would be when asked."""
        response = await world.call("analyst", "POST", "/v1/datasets/care/queries/preview", content=b'{"version":2}')
        assert response.status_code == 422
        assert "version" in [error["field"] for error in response.json()["errors"]]


class TestReleases:
    """Fetching again."""

    async def test_a_release_is_fetched_as_it_was_answered(self, world: World) -> None:
        """Byte for byte, or in binary."""
        answered = await world.ask("k", HISTOGRAM)
        path = f"/v1/queries/{answered.json()['id']}"
        assert (await world.call("analyst", "GET", path)).content == answered.content
        npy = await world.call("analyst", "GET", path, headers={"Accept": "application/x-npy"})
        assert np.load(io.BytesIO(npy.content), allow_pickle=False).tolist() == answered.json()["values"]

    async def test_another_analysts_release_is_not_there(self, world: World) -> None:
        """The bytes are those of an unknown id."""
        world.enrol("other", "analyst")
        headers = {"X-Request-Id": "r"}
        theirs = await world.call("other", "GET", f"/v1/queries/{world.query_id}", headers=headers)
        unknown = await world.call("other", "GET", f"/v1/queries/{world.query_id[:-4]}0000", headers=headers)
        no_id = await world.call("other", "GET", "/v1/queries/nonsense", headers=headers)
        assert theirs.status_code == 404
        assert theirs.content == unknown.content == no_id.content

    async def test_the_own_releases_are_listed(self, world: World) -> None:
        """Newest first, page by page, and no other analyst's."""
        world.enrol("other", "analyst")
        for number in range(3):
            await world.ask(f"k{number}", COUNT.replace(b"20.0", b"%d" % (30 + number)))
        seen: list[str] = []
        path: str | None = "/v1/queries?limit=3"
        while path is not None:
            page = (await world.call("analyst", "GET", path)).json()
            seen += [row["id"] for row in page["items"]]
            path = page["next"] and f"/v1/queries?limit=3&cursor={page['next']}"
        assert len(seen) == len(set(seen)) == 4
        assert world.query_id in seen
        assert (await world.call("other", "GET", "/v1/queries")).json() == {"items": [], "next": None}

    async def test_the_allowance_tells_what_is_left(self, world: World) -> None:
        """Worst cases, not charges."""
        (allowance,) = (await world.call("analyst", "GET", "/v1/allowances")).json()
        assert set(allowance) == {"dataset", "allowance_rho", "spent_rho", "left_rho"}
        assert (allowance["dataset"], allowance["allowance_rho"]) == ("care", None)


def _other() -> dict[str, object]:
    tables = {"people": {"kind": "individuals", "key": "id", "columns": {}}}
    return {"name": "other", "guarantee": {"rho": "1"}, "capacity": 10, "tables": tables}
