"""The datasets that a caller may see."""

import pytest

from tests.api.world import TABLES, World

PUBLIC = {
    "archived",
    "version",
    "name",
    "guarantee",
    "budget_rho",
    "budget_units",
    "accounting",
    "monitor",
    "unit",
    "mu",
    "limit_floor_rho",
    "capacity",
    "rule",
    "epoch",
    "tables",
}
COUNTS = {"sequence", "individuals", "rows", "warnings"}


async def test_an_analyst_sees_the_public_schema(world: World) -> None:
    """And not one count."""
    one = (await world.call("analyst", "GET", "/v1/datasets/care")).json()
    assert set(one) == PUBLIC
    assert one["tables"]["people"]["columns"]["age"] == TABLES["people"]["columns"]["age"]
    row = {name: value for name, value in one.items() if name != "tables"} | {"table_names": ["people", "visits"]}
    assert (await world.call("analyst", "GET", "/v1/datasets")).json() == {"items": [row], "next": None}


async def test_a_curator_sees_the_counts_too(world: World) -> None:
    """How many people and rows there are, and where the ledger stands."""
    one = (await world.call("curator", "GET", "/v1/datasets/care")).json()
    assert set(one) == PUBLIC | COUNTS
    assert (one["sequence"], one["individuals"], one["rows"]["people"]) == (1, 5, 5)
    (row,) = (await world.call("curator", "GET", "/v1/datasets")).json()["items"]
    assert set(row) == PUBLIC - {"tables"} | {"table_names", "sequence", "individuals"}
    assert (row["sequence"], row["individuals"]) == (1, 5)


async def test_datasets_are_listed_page_by_page(world: World) -> None:
    """By name, to a curator and an analyst alike; the cursor of the last page is null."""
    tables = {"people": {"kind": "individuals", "key": "id", "columns": {}}}
    for name in ("a-b", "a_b", "ab", "zoo"):
        body = {"name": name, "guarantee": {"rho": "1"}, "capacity": 10, "tables": tables}
        assert (await world.call("curator", "POST", "/v1/datasets", json=body)).status_code == 201
    for role in ("curator", "analyst"):
        pages: list[list[str]] = []
        cursor: str | None = ""
        for _ in range(3):
            params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
            page = (await world.call(role, "GET", "/v1/datasets", params=params)).json()
            pages.append([each["name"] for each in page["items"]])
            cursor = page["next"]
        assert (pages, cursor) == ([["a-b", "a_b"], ["ab", "care"], ["zoo"]], None)
        whole = (await world.call(role, "GET", "/v1/datasets?limit=5")).json()
        assert (len(whole["items"]), whole["next"]) == (5, None)


@pytest.mark.parametrize("role", ["curator", "analyst", "bound"])
@pytest.mark.parametrize("cursor", ["AA", "ICA", "QQ", "Y2FyZQo", "!", "YQ" * 100])
async def test_an_unknown_cursor_of_the_datasets_is_refused(world: World, role: str, cursor: str) -> None:
    """NUL, blanks, capitals, a line's end, no base64, more than a name."""
    world.enrol("bound", "analyst", dataset="care")
    reply = await world.call(role, "GET", f"/v1/datasets?cursor={cursor}")
    assert (reply.status_code, reply.json()["errors"][0]["field"]) == (422, "cursor")


async def test_a_listed_dataset_stays_small_whatever_its_schema(world: World) -> None:
    """A thousand categories more are no byte more in the list."""
    sizes = []
    for name, count in (("fewer", 2), ("mores", 1000)):
        column = {"type": "category", "categories": [f"c{number}" for number in range(count)]}
        tables = {"people": {"kind": "individuals", "key": "id", "columns": {"area": column}}}
        body = {"name": name, "guarantee": {"rho": "1"}, "capacity": 10, "tables": tables}
        assert (await world.call("curator", "POST", "/v1/datasets", json=body)).status_code == 201
        world.enrol(f"of {name}", "analyst", dataset=name)
        sizes.append(len((await world.call(f"of {name}", "GET", "/v1/datasets")).content))
    assert sizes[0] == sizes[1]


async def test_a_declared_rows_capacity_is_public(world: World) -> None:
    """An analyst reads the number that the curator declared; a table without one is shown as it was declared."""
    visits = {"kind": "events", "key": "id", "columns": {}}
    tables = {
        "people": {"kind": "individuals", "key": "id", "columns": {}},
        "visits": visits | {"rows_capacity": 500},
        "calls": visits,
    }
    body = {"name": "other", "guarantee": {"rho": "1"}, "capacity": 10, "tables": tables}
    assert (await world.call("curator", "POST", "/v1/datasets", json=body)).status_code == 201
    shown = (await world.call("analyst", "GET", "/v1/datasets/other")).json()["tables"]
    assert shown["visits"]["rows_capacity"] == 500
    assert "rows_capacity" not in shown["calls"]


async def test_an_analysts_view_does_not_move_with_the_data(world: World) -> None:
    """An upload, an erasure and a query leave the same bytes."""
    before = (await world.call("analyst", "GET", "/v1/datasets/care")).content
    await world.ask("k")
    await world.call("curator", "DELETE", "/v1/datasets/care/individual?individual=bo")
    assert (await world.call("analyst", "GET", "/v1/datasets/care")).content == before


async def test_a_principal_of_one_dataset_sees_that_one(world: World) -> None:
    """The other is not listed, and not there."""
    tables = {"people": {"kind": "individuals", "key": "id", "columns": {}}}
    body = {"name": "other", "guarantee": {"rho": "1"}, "capacity": 10, "tables": tables}
    assert (await world.call("curator", "POST", "/v1/datasets", json=body)).status_code == 201
    for role in ("analyst", "curator"):
        world.enrol(f"bound {role}", role, dataset="care")
        listed = (await world.call(f"bound {role}", "GET", "/v1/datasets")).json()
        assert [each["name"] for each in listed["items"]] == ["care"]
        assert (await world.call(f"bound {role}", "GET", "/v1/datasets/other")).status_code == 404
