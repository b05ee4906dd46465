"""The ledger, for those who check it."""

from tests.api.world import World

COUNTS = {"charged", "left_out"}


async def test_a_curator_sees_how_many_were_charged(world: World) -> None:
    """Five people, all of whom could pay."""
    page = (await world.call("curator", "GET", "/v1/datasets/care/ledger")).json()
    (row,) = page["items"]
    assert (row["charged"], row["left_out"]) == (5, 0)
    assert (row["query_id"], row["analyst"], page["next"]) == (world.query_id, "analyst", None)


async def test_an_auditor_sees_everything_else(world: World) -> None:
    """The same rows without the counts of people."""
    full = (await world.call("curator", "GET", "/v1/datasets/care/ledger")).json()
    audited = (await world.call("auditor", "GET", "/v1/datasets/care/ledger")).json()
    expected = [{name: value for name, value in row.items() if name not in COUNTS} for row in full["items"]]
    assert audited == {"items": expected, "next": None}


async def test_the_pages_follow_each_other(world: World) -> None:
    """A cursor leads on, to every entry once."""
    for number in range(3):
        await world.ask(f"k{number}", b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":%d}}' % (30 + number))
    seen: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await world.call("auditor", "GET", f"/v1/datasets/care/ledger?limit=2{cursor}")).json()
        seen += [row["sequence"] for row in page["items"]]
        cursor = None if page["next"] is None else f"&cursor={page['next']}"
    assert seen == [4, 3, 2, 1]
