"""The analyst's calls."""

import io
import json
from dataclasses import replace
from unittest.mock import ANY

import numpy as np
import orjson
import pyarrow as pa
import pytest

from service.query.schema import Schema
from tests.api.route_table import REGISTRATION
from tests.api.world import COUNT, TABLES, World

HISTOGRAM = b'{"version":1,"select":[{"histogram":{"column":"country"}}],"noise":{"sigma":20.5}}'
SUM = b'{"version":1,"select":[{"sum":{"column":"age"}}],"per_individual":{"l2_clip":50.5},"noise":{"sigma":100.0}}'


class TestAsk:
    """One query."""

    async def test_a_key_that_was_answered_replays_what_is_refused_today(self, world: World) -> None:
        """By itself, in binary and in a batch, where its neighbours are answered and refused; no memory stays held."""
        kept_before = world.replica.admission.memory.kept_bytes
        first = await world.ask("k", SUM)
        record = world.replica.registry.record("care")
        tables = {name: dict(table) for name, table in TABLES.items()}
        tables["people"]["columns"] = {"country": TABLES["people"]["columns"]["country"]}
        state = world.replica.registry.writer(record).committer.state
        state.record = replace(record, schema=Schema.model_validate(tables))
        assert (await world.ask("k", SUM)).content == first.content
        npy = await world.ask("k", SUM, headers={"Accept": "application/x-npy"})
        assert np.load(io.BytesIO(npy.content)).tolist() == first.json()["values"]
        refused = await world.ask("l", SUM)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "select[0].sum.column")
        entries = [{"idempotency_key": key, "query": json.loads(SUM)} for key in ("k", "l")]
        entries.append({"idempotency_key": "m", "query": json.loads(COUNT)})
        path = "/v1/datasets/care/queries/batch"
        answers = (await world.call("analyst", "POST", path, json={"queries": entries})).json()["answers"]
        assert answers[:2] == [first.json(), refused.json() | {"request_id": ANY}]
        assert "values" in answers[2]
        assert world.replica.admission.memory.kept_bytes == kept_before

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
            (b"{", "body"),
            (COUNT.replace(b"20.0", b"NaN"), "noise.sigma"),
            (SUM.replace(b"age", b"wage"), "select[0].sum.column"),
        ],
    )
    async def test_what_is_wrong_is_named(self, world: World, body: bytes, field: str) -> None:
        """From the request and the public schema alone, as a problem in any form; the key stays free."""
        response = await world.ask("k", body, headers={"Accept": "application/x-npy"})
        assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")
        assert response.json()["errors"][0]["field"] == field
        assert (await world.ask("k")).status_code == 200


class TestForms:
    """An answer in binary."""

    async def test_npy_and_arrow_show_the_released_values(self, world: World) -> None:
        """They have the numbers of the JSON, and the id in a header."""
        shown = (await world.ask("k", SUM)).json()
        npy = await world.ask("k", SUM, headers={"Accept": "application/x-npy"})
        arrow = await world.ask("k", SUM, headers={"Accept": "application/vnd.apache.arrow.stream"})
        assert np.load(io.BytesIO(npy.content), allow_pickle=False).tolist() == shown["values"]
        table = pa.ipc.open_stream(arrow.content).read_all()
        assert table["value"].to_pylist() == shown["values"]
        assert {npy.headers["x-query-id"], arrow.headers["x-query-id"]} == {shown["id"]}
        assert npy.headers["content-type"] == "application/x-npy"
        assert arrow.headers["content-type"] == "application/vnd.apache.arrow.stream"


class TestPreview:
    """Everything public, before it costs anything."""

    async def test_it_promises_what_the_answer_keeps(self, world: World) -> None:
        """Dimension, grid, sigma, half width and worst case; without a key, and without a place in the ledger."""
        preview = (await world.call("analyst", "POST", "/v1/datasets/care/queries/preview", content=SUM)).json()
        assert (await world.call("curator", "GET", "/v1/datasets/care")).json()["sequence"] == 1
        answer = (await world.ask("k", SUM)).json()
        promised = ("dimension", "grid", "sigma", "half_width_95", "worst_case_rho")
        for name in (*promised, "worst_case_share", "largest_countable_norm", "warnings"):
            assert preview[name] == answer[name]

    async def test_it_states_the_worst_case_in_every_unit(self, world: World) -> None:
        """It is stated as rho, and as a share of the budget."""
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
        """The bytes are the same but for the allowance, which a curator does not have."""
        world.enrol("bound", "curator", dataset="care")
        path = "/v1/datasets/care/queries/preview"
        analyst, curator, bound = [
            (await world.call(role, "POST", path, content=SUM)).json() for role in ("analyst", "curator", "bound")
        ]
        assert curator == bound == analyst | {"allowance_left_rho": None}
        await world.call("curator", "POST", "/v1/datasets", json=REGISTRATION)
        world.enrol("elsewhere", "curator", dataset="new")
        assert (await world.call("elsewhere", "POST", path, content=SUM)).status_code == 404


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
        """The bytes are those of an unknown id, and no listing has it."""
        world.enrol("other", "analyst")
        headers = {"X-Request-Id": "r"}
        theirs = await world.call("other", "GET", f"/v1/queries/{world.query_id}", headers=headers)
        unknown = await world.call("other", "GET", f"/v1/queries/{world.query_id[:-4]}0000", headers=headers)
        no_id = await world.call("other", "GET", "/v1/queries/nonsense", headers=headers)
        assert theirs.status_code == 404
        assert theirs.content == unknown.content == no_id.content
        assert (await world.call("other", "GET", "/v1/queries")).json() == {"items": [], "next": None}
