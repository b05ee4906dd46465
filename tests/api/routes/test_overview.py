"""The curator's overview over HTTP: events, exports, a verification, an account by key."""

import csv
import io
import json
from itertools import count
from uuid import UUID

import pyarrow.parquet as pq
import pytest

from service.api.routes import overview
from service.api.routes.overview import PARQUET
from service.core.charge import rho_of_units
from tests.api.world import COUNT, CSV, World
from tests.memory.cache import MemoryWitness
from tests.waiting import until_async

ODD = ["ø, å", 'say "x"', "=1+1", "-5", "a/b?c"]


async def _add_odd_people(world: World) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["person_id", "country", "age"], *([key, "NO", 40] for key in ODD)])
    path = "/v1/datasets/care/tables/people/rows"
    response = await world.call("curator", "POST", path, headers=CSV, content=text.getvalue().encode())
    assert response.status_code == 200, response.text


async def test_the_first_event_comes_at_once_and_the_next_with_a_query(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream ends after the seconds that were asked for."""
    monkeypatch.setattr(overview, "EVENTS_EVERY_S", 0.01)
    looks = iter([1, 1, 4, 4])

    def sequence(_: str) -> int:
        return next(looks, 4)

    monkeypatch.setattr(world.replica.overview, "sequence", sequence)
    response = await world.call("curator", "GET", "/v1/datasets/care/events", params={"seconds": 1})
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    assert events == [{"sequence": 1}, {"sequence": 4}]
    assert ": still here" in response.text


async def test_a_stream_ends_when_the_process_leaves_or_the_key_is_revoked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a look, and within a beat where there is no event (`tests/e2e/test_streams.py` has those with one)."""
    monkeypatch.setattr(overview, "EVENTS_EVERY_S", 0.001)
    world.enrol("leaving", "curator")

    looks = count(1)

    def revoked_at_the_second_look(_: str) -> int:
        if next(looks) == 2:
            world.replica.principals.revoke(UUID(world.ids["leaving"]))
        return 1

    with monkeypatch.context() as patched:
        patched.setattr(world.replica.overview, "sequence", revoked_at_the_second_look)
        response = await world.call("leaving", "GET", "/v1/datasets/care/events", params={"seconds": 600})
    assert response.text.count("data: ") == 1
    monkeypatch.setattr(overview, "BEAT_EVERY", 10**9)
    monkeypatch.setitem(world.app.state._state, "drain_state", type("Draining", (), {"draining": True})())
    response = await world.call("curator", "GET", "/v1/datasets/care/events", params={"seconds": 600})
    assert response.text.count("data: ") == 1


async def test_a_principal_has_a_bounded_number_of_streams(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused with the limit, others get theirs, and a stream that ends gives its place back."""
    monkeypatch.setattr(overview, "EVENTS_EVERY_S", 0.001)
    path, streams, bounds = "/v1/datasets/care/events", world.app.state.streams, world.app.state.places.bounds
    caller = UUID(world.ids["curator"])
    world.enrol("other", "curator")
    streams[caller] = bounds.streams_max
    refused = await world.call("curator", "GET", path, params={"seconds": 0})
    assert (refused.status_code, refused.json()["type"]) == (429, "urn:sparing:problem:too-many-at-once")
    assert f"At most {bounds.streams_max} " in refused.json()["detail"]
    assert (await world.call("other", "GET", path, params={"seconds": 0})).status_code == 200
    assert streams == {caller: bounds.streams_max}
    streams[caller] = 0
    assert (await world.call("curator", "GET", path, params={"seconds": 0})).status_code == 200
    assert not streams


async def test_an_export_has_every_account(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In both forms, over many pages; a spreadsheet takes no key for a formula."""
    monkeypatch.setattr("service.workflows.curator.PAGE_ROWS", 3)
    await _add_odd_people(world)
    path = "/v1/datasets/care/budgets/export"
    listed = (await world.call("curator", "GET", "/v1/datasets/care/budgets")).json()["items"]
    as_csv = await world.call("curator", "GET", path)
    rows = list(csv.DictReader(io.StringIO(as_csv.text)))
    assert as_csv.headers["content-disposition"] == 'attachment; filename="care-budgets.csv"'
    safe = {"=1+1": "'=1+1"}
    assert [row["key"] for row in rows] == [safe.get(row["key"], row["key"]) for row in listed]
    assert [row["spent_rho"] for row in rows] == [row["spent_rho"] for row in listed]
    as_parquet = await world.call("curator", "GET", path, headers={"Accept": PARQUET})
    assert pq.read_table(io.BytesIO(as_parquet.content)).to_pylist() == listed


async def test_one_account_its_record_and_its_receipts_are_found_by_any_key(world: World) -> None:
    """A key may hold a slash and a question mark."""
    await _add_odd_people(world)
    await world.ask("again", COUNT.replace(b"20.0", b"30.0"))
    listed = {
        row["key"]: row for row in (await world.call("curator", "GET", "/v1/datasets/care/budgets")).json()["items"]
    }
    for key in ODD:
        account = await world.call("curator", "GET", "/v1/datasets/care/individual", params={"individual": key})
        assert account.json() == listed[key]
        receipts = await world.call("curator", "GET", "/v1/datasets/care/receipts", params={"individual": key})
        assert [row["outcome"] for row in receipts.json()["items"]] == ["charged", "untouched"]
        record = await world.call("curator", "GET", "/v1/datasets/care/record", params={"individual": key})
        assert (record.json()["individual"], record.json()["tables"]["people"]["count"]) == (key, 1)
    missing, unread = [
        await world.call("curator", "GET", f"/v1/datasets/care/{part}?individual=nobody")
        for part in ("individual", "record")
    ]
    assert (missing.status_code, unread.status_code) == (404, 404)
    assert unread.json()["detail"] == missing.json()["detail"]


async def test_a_verification_runs_in_the_background_and_tells_its_result(world: World) -> None:
    """Asked for twice, it runs once."""
    path = "/v1/datasets/care/verification"
    assert (await world.call("curator", "GET", path)).json()["state"] == "never"
    begun = await world.call("curator", "POST", path)
    assert (begun.status_code, begun.json()["state"]) == (202, "running")
    await until_async(lambda: world.replica.overview.verification("care").state != "running")
    told = (await world.call("curator", "GET", path)).json()
    assert (told["state"], told["entries"], told["findings"]) == ("clean", 1, [])


async def test_the_ledger_is_searched_by_words_and_analyst(world: World) -> None:
    """Every word must be in the canonical query; marks of patterns stand for themselves."""
    where = b'{"version":1,"select":[{"count":{}}],"where":{"eq":[{"col":"country"},"NO"]},"noise":{"sigma":20.0}}'
    await world.ask("second", where)
    path = "/v1/datasets/care/ledger"

    async def found(**parameters: str) -> list[int]:
        response = await world.call("auditor", "GET", path, params=parameters)
        return [row["sequence"] for row in response.json()["items"]]

    assert await found() == [2, 1]
    assert await found(search="COUNTRY no") == [2]
    assert await found(search="country dk") == []
    for mark in ("%", "c%y", "co_ntry", "\\"):
        assert await found(search=mark) == []
    analyst = world.ids["analyst"]
    assert await found(analyst=analyst) == [2, 1]
    assert await found(analyst=world.ids["auditor"]) == []
    assert (await world.call("auditor", "GET", path, params={"analyst": "x"})).status_code == 422
    assert (await world.call("auditor", "GET", path, params={"search": "x" * 201})).status_code == 422


async def test_an_alarm_is_set_read_and_removed(world: World) -> None:
    """A share outside of (0, 1] names the field."""
    path = "/v1/datasets/care/alarm"
    assert (await world.call("curator", "GET", path)).json() == {"share": None, "rang_at_sequence": None}
    assert (await world.call("curator", "PUT", path, json={"share": 0.25})).json()["share"] == 0.25
    for wrong in (0, 1.5, "x"):
        response = await world.call("curator", "PUT", path, json={"share": wrong})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "share")
    assert (await world.call("curator", "PUT", path, json={"share": None})).json()["share"] is None


async def test_the_summary_counts_those_who_ask_to_be_erased(world: World) -> None:
    """Until they are erased; the list has their keys."""
    path = "/v1/datasets/care"

    async def asked() -> tuple[int, list[str]]:
        summary = (await world.call("curator", "GET", f"{path}/budgets/summary")).json()
        listed = (await world.call("curator", "GET", f"{path}/erasure-requests")).json()
        return summary["erasures_asked"], listed["items"]

    assert await asked() == (0, [])
    assert (await world.call("individual", "POST", "/v1/me/erasure/care")).status_code == 202
    assert await asked() == (1, ["ada"])
    await world.call("curator", "DELETE", f"{path}/individual?individual=ada")
    assert await asked() == (0, [])


async def test_a_backup_that_was_put_back_shows_by_what_it_lacks(world: World) -> None:
    """Also while the dataset is closed; reconciled, or with the newer copy, it is whole again."""
    path = "/v1/datasets/care"

    async def told() -> dict[str, object]:
        response = await world.call("curator", "GET", f"{path}/backup")
        assert response.status_code == 200
        state: dict[str, object] = response.json()
        return state

    backup = dict(world.store.kept)
    await world.ask("second", COUNT.replace(b"20.0", b"30.0"))
    whole = {"state": "whole", "sequence": 2, "witnessed_sequence": 2, "shared_sequence": None, "missing_rho": None}
    assert await told() == whole
    newest, world.store.kept = world.store.kept, backup
    lost = whole | {"state": "ledger-rollback", "sequence": 1, "shared_sequence": 1}
    assert await told() == lost | {"missing_rho": str(rho_of_units(-(-(2**40) // 1800)))}
    assert (await world.call("curator", "GET", f"{path}/budgets")).status_code == 503
    assert await told() == lost | {"missing_rho": str(rho_of_units(-(-(2**40) // 1800)))}
    world.store.kept = newest
    assert await told() == whole
    witness = world.replica.registry.witness
    assert isinstance(witness, MemoryWitness)
    witness.kept.clear()
    assert await told() == whole | {"state": "witness-lost", "witnessed_sequence": None}
