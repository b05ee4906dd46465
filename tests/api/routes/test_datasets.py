"""The datasets that a caller may see."""

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
