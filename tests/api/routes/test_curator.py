"""The curator's calls."""

import gzip
from typing import Any
from urllib.parse import quote

import pytest

from tests.api.route_table import REGISTRATION
from tests.api.world import CSV, TABLES, World
from tests.engine.ingest.uploads import ARROW, PARQUET, parquet

ROWS = "/v1/datasets/care/tables/people/rows"
PREVIEW = "/v1/files/preview"
IN_PARQUET = {"Content-Type": PARQUET}


def registration(**changes: Any) -> dict[str, Any]:
    """The body that registers a new dataset, with changes."""
    return {**REGISTRATION, **changes}


class TestRegister:
    """A dataset's guarantee and schema, for good."""

    async def test_the_reply_states_the_budget(self, world: World) -> None:
        """In rho, in units and as mu."""
        response = await world.call("curator", "POST", "/v1/datasets", json=registration(guarantee={"rho": "0.5"}))
        body = response.json()
        assert response.status_code == 201
        assert (body["budget_rho"], body["budget_units"], body["mu"]) == ("0.5", 2**39, pytest.approx(1.0))
        assert (body["rule"], body["capacity"], body["epoch"], body["limit_floor_rho"]) == ("skip", 10, 1, "0.5")
        assert body["guarantee"] == {"epsilon": None, "delta": None}

    async def test_numbers_may_come_as_json_numbers(self, world: World) -> None:
        """Epsilon and delta are accepted as numbers, and not only as texts."""
        body = registration(guarantee={"epsilon": 1, "delta": 1e-6})
        response = await world.call("curator", "POST", "/v1/datasets", json=body)
        assert (response.status_code, response.json()["guarantee"]) == (201, {"epsilon": "1", "delta": "0.000001"})

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"name": "Not A Name"}, "name"),
            ({"guarantee": {}}, "guarantee"),
            ({"guarantee": {"epsilon": "1"}}, "guarantee"),
            ({"guarantee": {"epsilon": "1", "delta": "1e-6", "rho": "1"}}, "guarantee"),
            ({"guarantee": {"rho": "-1"}}, "guarantee.rho"),
            ({"guarantee": {"rho": "NaN"}}, "guarantee.rho"),
            ({"guarantee": {"rho": "1e-20"}}, "guarantee"),
            ({"capacity": 0}, "capacity"),
            ({"capacity": "10"}, "capacity"),
            ({"rule": "clip"}, "rule"),
            ({"limit_floor_rho": "100000"}, "limit_floor_rho"),
            (
                {"tables": {"people": {**TABLES["people"], "columns": {"age": {"type": "integer", "lower": 0}}}}},
                "tables.people.columns.age.upper",
            ),
            ({"extra": 1}, "extra"),
        ],
    )
    async def test_what_is_wrong_is_named(self, world: World, changes: dict[str, Any], field: str) -> None:
        """By the field as it stands in the body."""
        response = await world.call("curator", "POST", "/v1/datasets", json=registration(**changes))
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field)

    async def test_a_domain_that_was_only_proposed_says_what_to_do(self, world: World) -> None:
        """`confirm` is left over from a proposed schema."""
        age = {"type": "integer", "lower": 0, "upper": 9, "confirm": "must not be read off the data"}
        body = registration(tables={"people": {**TABLES["people"], "columns": {"age": age}}})
        (error,) = (await world.call("curator", "POST", "/v1/datasets", json=body)).json()["errors"]
        assert error["field"] == "tables.people.columns.age.confirm"
        assert error["message"].endswith("state it from elsewhere, or accept it, and remove this member")
        body = registration(more=1)
        (error,) = (await world.call("curator", "POST", "/v1/datasets", json=body)).json()["errors"]
        assert error == {"field": "more", "message": "is no field that is known here"}

    async def test_a_large_delta_is_warned_of(self, world: World) -> None:
        """Above one in the capacity, and once there are individuals, above one in their number."""
        body = registration(guarantee={"epsilon": 1, "delta": "0.2"})
        told = (await world.call("curator", "POST", "/v1/datasets", json=body)).json()
        (warning,) = told["warnings"]
        assert warning.startswith("delta is 0.2, more than 1 in the 10 individuals that the capacity admits")
        path = f"/v1/datasets/{told['name']}"
        found = []
        for keys in ("abcde", "f"):
            rows = "person_id,country,age\n" + "".join(f"{key},NO,1\n" for key in keys)
            await world.call("curator", "POST", f"{path}/tables/people/rows", headers=CSV, content=rows.encode())
            found.append((await world.call("curator", "GET", path)).json()["warnings"])
        assert found[0] == []
        assert found[1][0].startswith("delta is 0.2, more than 1 in the 6 individuals that the dataset has")
        analyst = (await world.call("analyst", "GET", "/v1/datasets/care")).json()
        assert "warnings" not in analyst


class TestRows:
    """Appending, all or nothing."""

    async def test_the_reply_counts_for_the_curator(self, world: World) -> None:
        """Rows, people, and what was clipped, out of domain or missing."""
        rows = b"person_id,country,age\nfa,XX,130\ngo,,\n"
        accepting = f"{ROWS}?accept=country,age"
        response = await world.call("curator", "POST", accepting, headers=CSV, content=rows)
        report = response.json()
        assert (response.status_code, report["rows"], report["individuals"]) == (200, 2, 2)
        assert (report["clipped"]["age"], report["out_of_domain"]["country"]) == (1, 1)
        assert (report["nulls"]["age"], report["nulls"]["country"]) == (1, 1)

    async def test_every_format_is_told_by_its_content_type(self, world: World) -> None:
        """NDJSON here; the engine's tests know all four."""
        headers = {"Content-Type": "application/x-ndjson; charset=utf-8"}
        rows = b'{"person_id":"fa","country":"NO","age":1}\n'
        assert (await world.call("curator", "POST", ROWS, headers=headers, content=rows)).json()["rows"] == 1

    async def test_one_bad_row_refuses_all(self, world: World) -> None:
        """Named by row and column; no individual joined."""
        rows = b"person_id,country,age\nfa,NO,1\nada,NO,2\n"
        response = await world.call("curator", "POST", ROWS, headers=CSV, content=rows)
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "rows[2].person_id")
        assert (await world.call("curator", "GET", "/v1/datasets/care")).json()["individuals"] == 5

    async def test_the_same_key_and_bytes_get_the_same_report(self, world: World) -> None:
        """Byte for byte; the second says in a header that it is a repeat, and nothing is stored twice."""
        rows = b"person_id,country,age\nfa,NO,110\n"
        first, again = [
            await world.call("curator", "POST", ROWS, headers=CSV | {"Idempotency-Key": "one"}, content=rows)
            for _ in range(2)
        ]
        assert (first.status_code, again.status_code, again.content) == (200, 200, first.content)
        assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
        assert (await world.call("curator", "GET", "/v1/datasets/care")).json()["individuals"] == 6

    async def test_a_key_is_as_that_of_a_query(self, world: World) -> None:
        """Printable, and short."""
        response = await world.call("curator", "POST", ROWS, headers=CSV | {"Idempotency-Key": "k\x7f"}, content=b"x")
        assert (response.status_code, response.json()["type"]) == (400, "urn:sparing:problem:idempotency-key-invalid")

    async def test_gzip_is_unpacked(self, world: World) -> None:
        """The rows are the same; under a key they are the same upload as the plain ones."""
        rows = b"person_id,country,age\nfa,NO,1\n"
        headers = CSV | {"Idempotency-Key": "one"}
        packed = await world.call(
            "curator", "POST", ROWS, headers=headers | {"Content-Encoding": "gzip"}, content=gzip.compress(rows)
        )
        plain = await world.call("curator", "POST", ROWS, headers=headers, content=rows)
        assert (packed.status_code, packed.json()["rows"], plain.content) == (200, 1, packed.content)

    @pytest.mark.parametrize(
        ("encoding", "content", "status", "slug"),
        [
            ("gzip", gzip.compress(bytes(2**20 + 1)), 413, "content-too-large"),
            ("gzip", gzip.compress(b"person_id")[:-4], 422, "invalid-request"),
            ("gzip", b"person_id,country,age\n", 422, "invalid-request"),
            ("gzip", gzip.compress(b"x") + b"trailing", 422, "invalid-request"),
            ("br", b"x", 415, "unsupported-media-type"),
            ("gzip, gzip", b"x", 415, "unsupported-media-type"),
        ],
        ids=["bomb", "cut", "plain", "trailing", "brotli", "twice"],
    )
    async def test_a_packed_body_is_bounded_and_whole(
        self, world: World, encoding: str, content: bytes, status: int, slug: str
    ) -> None:
        """The limit counts unpacked bytes: a small body does not become a large file."""
        headers = CSV | {"Content-Encoding": encoding}
        response = await world.call("curator", "POST", ROWS, headers=headers, content=content)
        assert (response.status_code, response.json()["type"]) == (status, f"urn:sparing:problem:{slug}")

    async def test_the_problem_counts_all_wrong_rows(self, world: World) -> None:
        """By column and message, beside the first of them."""
        rows = b"person_id,country,age\n" + b"".join(b"p%d,NO,x\n" % number for number in range(50))
        problem = (await world.call("curator", "POST", ROWS, headers=CSV, content=rows)).json()
        assert (len(problem["errors"]), problem["errors"][0]["field"]) == (20, "rows[1].age")
        group = {"column": "age", "message": "not an integer", "rows": 50, "first_rows": [1, 2, 3, 4, 5]}
        assert problem["rows"] == {"wrong": 50, "is_complete": True, "groups": [group]}

    async def test_the_delimiter_is_a_parameter(self, world: World) -> None:
        """Another mark is suggested, and read when it is stated; a wrong one names the field."""
        rows = b"person_id;country;age\nfa;NO;1\n"
        problem = (await world.call("curator", "POST", ROWS, headers=CSV, content=rows)).json()
        assert "looks delimited by ';'" in problem["errors"][0]["message"]
        taken = await world.call("curator", "POST", f"{ROWS}?delimiter=%3B", headers=CSV, content=rows)
        assert taken.json()["rows"] == 1
        for query, headers in (("delimiter=x", CSV), ("delimiter=%3B", {"Content-Type": "application/x-ndjson"})):
            refused = await world.call("curator", "POST", f"{ROWS}?{query}", headers=headers, content=rows)
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "delimiter")

    async def test_columns_may_have_other_names_in_the_file(self, world: World) -> None:
        """A JSON object says which; what is none is named."""
        rows = b"Person,land,age,note\nfa,NO,1,x\n"
        named = quote('{"Person": "person_id", "land": "country", "note": null}')
        taken = await world.call("curator", "POST", f"{ROWS}?columns={named}", headers=CSV, content=rows)
        assert (taken.status_code, taken.json()["rows"]) == (200, 1)
        for wrong in ("x", "[]", '{"a": 1}'):
            refused = await world.call("curator", "POST", f"{ROWS}?columns={quote(wrong)}", headers=CSV, content=rows)
            assert refused.status_code == 422
            assert refused.json()["errors"][0]["field"].startswith("columns")

    async def test_a_dry_run_stores_nothing(self, world: World) -> None:
        """The report says so."""
        rows = b"person_id,country,age\nfa,NO,1\n"
        response = await world.call("curator", "POST", f"{ROWS}?dry_run=true", headers=CSV, content=rows)
        assert (response.status_code, response.json()["rows"], response.json()["stored"]) == (200, 1, False)
        assert (await world.call("curator", "GET", "/v1/datasets/care")).json()["individuals"] == 5

    async def test_what_is_refused_may_be_dropped_as_the_address_says(self, world: World) -> None:
        """Rows beyond a limit, of unknown individuals, and repeated ones; what the address may say is named."""
        visits = ROWS.replace("people", "visits")
        rows = b"person_id,day\nnobody,1\n" + b"ada,1\n" * 5000
        problem = (await world.call("curator", "POST", visits, headers=CSV, content=rows)).json()
        assert problem["errors"][0]["field"] == "rows[1].person_id"
        unknown = f"{visits}?unknown_individuals=drop"
        problem = (await world.call("curator", "POST", unknown, headers=CSV, content=rows)).json()
        assert problem["rows"]["over_limit"]["first"][0]["key"] == "ada"
        dropping = f"{unknown}&rows_over_limit=truncate"
        report = (await world.call("curator", "POST", dropping, headers=CSV, content=rows)).json()
        assert (report["rows_unknown"], report["rows_dropped"]) == (1, problem["rows"]["over_limit"]["excess"])
        repeated = b"person_id,day\nbo,1\nbo,1\n"
        report = (
            await world.call("curator", "POST", f"{visits}?duplicates=drop", headers=CSV, content=repeated)
        ).json()
        assert (report["rows"], report["rows_repeated"]) == (1, 1)
        for option in ("rows_over_limit=cut", "unknown_individuals=create", "duplicates=once"):
            wrong = await world.call("curator", "POST", f"{visits}?{option}", headers=CSV, content=repeated)
            assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, option.partition("=")[0])


class TestPreview:
    """The beginning of a file that is for no dataset yet."""

    async def test_the_first_rows_come_as_csv_and_nothing_is_kept(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        """With what is text, and what is left out and why; datasets and acts are as before, and no log has a value."""
        caplog.set_level("DEBUG")
        places = ("/v1/datasets", "/v1/datasets/care/acts")
        before = [(await world.call("curator", "GET", place)).content for place in places]
        response = await world.call(
            "curator", "POST", PREVIEW, headers=IN_PARQUET, content=parquet({"id": ["k0815"], "n": [2.0], "l": [[1]]})
        )
        assert (response.status_code, response.json()) == (
            200,
            {
                "csv": "id,n\r\nk0815,2\r\n",
                "rows": 1,
                "text_columns": ["id"],
                "left_out": {"l": "it holds neither numbers, nor text, nor booleans"},
                "is_whole": True,
            },
        )
        assert [(await world.call("curator", "GET", place)).content for place in places] == before
        assert "k0815" not in caplog.text

    @pytest.mark.parametrize("content_type", ["text/csv", "application/json"])
    async def test_text_is_refused_unread(self, world: World, content_type: str) -> None:
        """A reader of CSV is wherever the file is, and nothing need be sent."""
        response = await world.call("curator", "POST", PREVIEW, headers={"Content-Type": content_type}, content=b"a\n")
        accepted = f"{PARQUET}, {ARROW}"
        assert (response.status_code, response.headers["accept"]) == (415, accepted)


class TestEpochs:
    """When data should be asked about afresh."""

    async def test_the_next_epoch_is_public(self, world: World) -> None:
        """It is told in the reply, in the schema, and in every answer from then on."""
        opened = await world.call("curator", "POST", "/v1/datasets/care/epochs")
        assert (opened.status_code, opened.json()) == (201, {"epoch": 2})
        assert (await world.call("analyst", "GET", "/v1/datasets/care")).json()["epoch"] == 2
        answer = (await world.ask("again")).json()
        assert (answer["epoch"], answer["reused"]) == (2, False)


class TestPrincipals:
    """Keys, shown once."""

    async def test_the_key_opens_and_is_shown_once(self, world: World) -> None:
        """In the reply to its making, and nowhere after."""
        wish = {"role": "analyst", "name": "new", "dataset": "care", "allowance_rho": "0.25"}
        made = await world.call("curator", "POST", "/v1/principals", json=wish)
        body = made.json()
        assert made.status_code == 201
        assert {name: body[name] for name in wish} == wish
        assert body["individual"] is None
        world.keys["new"] = body["key"]
        assert (await world.call("new", "GET", "/v1/allowances")).json()[0]["allowance_rho"] == "0.25"
        listed = (await world.call("curator", "GET", "/v1/principals")).text
        assert body["id"] in listed
        assert body["key"] not in listed
        assert body["key"].split("_", 2)[2] not in listed

    async def test_the_list_is_narrowed(self, world: World) -> None:
        """By role, by dataset, and by words in the name and the other facts."""
        await world.call("curator", "POST", "/v1/datasets/care/individuals/keys", json=["bo", "cy"])

        async def listed(**params: str) -> set[str]:
            reply = await world.call("curator", "GET", "/v1/principals", params=params)
            return {row["individual"] or row["role"] for row in reply.json()["items"]}

        assert await listed() == {"curator", "analyst", "auditor", "ada", "bo", "cy"}
        assert await listed(role="individual", limit="3") == {"ada", "bo", "cy"}
        assert await listed(dataset="nowhere") == set()
        assert await listed(search="CARE bo") == {"bo"}
        wrong = await world.call("curator", "GET", "/v1/principals", params={"role": "owner"})
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "role")

    async def test_a_revoked_key_stops_at_once(self, world: World) -> None:
        """And can be revoked once."""
        path = f"/v1/principals/{world.ids['analyst']}"
        first, second = [await world.call("curator", "DELETE", path) for _ in range(2)]
        assert (first.status_code, second.status_code) == (204, 404)
        assert (await world.call("analyst", "GET", "/v1/allowances")).status_code == 401

    @pytest.mark.parametrize(
        ("wish", "field"),
        [
            ({"role": "owner", "name": "x"}, "role"),
            ({"role": "analyst"}, "name"),
            ({"role": "analyst", "name": "x", "dataset": 7}, "dataset"),
            ({"role": "individual", "name": "x", "dataset": "care", "individual": "a\0"}, "individual"),
            ({"role": "analyst", "name": "x", "allowance_rho": "Infinity"}, "allowance_rho"),
            ({"role": "analyst", "name": "x", "admin": True}, "admin"),
        ],
    )
    async def test_what_is_wrong_is_named(self, world: World, wish: dict[str, Any], field: str) -> None:
        """And no key is made."""
        response = await world.call("curator", "POST", "/v1/principals", json=wish)
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field)

    @pytest.mark.parametrize("field", ["role", "dataset", "individual", "key_hash", "id", "revoked_at", "created_at"])
    async def test_a_change_reaches_no_other_field(self, world: World, field: str) -> None:
        """The role of a principal and the bounds of its key are for good."""
        path, before = f"/v1/principals/{world.ids['analyst']}", world.store.principal_records.copy()
        response = await world.call("curator", "PATCH", path, json={"name": "new", field: "curator"})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field)
        assert world.store.principal_records == before
