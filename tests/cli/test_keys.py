"""`sparing keys`: made alone and by file, listed, replaced and revoked, on a deployment that runs."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.homes import Homes
from tests.e2e.http_calls import CSV, client
from tests.e2e.processes import new_key, served, sparing
from tests.waiting import until

TABLES = {"people": {"kind": "individuals", "key": "person_id", "columns": {}}}
NAMES = ["ann", "b, ob", "ö"]


@pytest.fixture(scope="module")
def home(homes: Homes) -> Iterator[Path]:
    """The home of a service with a dataset of three people."""
    folder = homes.begun()
    with served(folder) as running:
        with client(running.url, new_key(folder, "curator")) as curator:
            wish = {"name": "town", "guarantee": {"rho": "1"}, "capacity": 10, "tables": TABLES}
            curator.post("/v1/datasets", json=wish).raise_for_status()
            rows = "".join(["person_id\n", *(f'"{name}"\n' for name in NAMES)]).encode()
            curator.post("/v1/datasets/town/tables/people/rows", content=rows, headers=CSV).raise_for_status()
        (folder / "url").write_text(running.url)
        yield folder


def status(home: Path, api_key: str, path: str) -> int:
    """The status of a request with a key."""
    with client((home / "url").read_text(), api_key) as connection:
        return connection.get(path).status_code


def listed(home: Path, *options: str) -> list[dict[str, object]]:
    """The principals that `keys list --json` shows."""
    done = sparing("keys", "list", "--json", *options, home=home)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_an_analyst_is_made_with_its_words_and_its_end(home: Path) -> None:
    """And listed without its key, as text and as JSON."""
    words = ("--organisation", "Office", "--purpose", "Plans", "--expires-at", "2999-01-31", "--allowance-rho", "0.5")
    api_key = new_key(home, "analyst", "--dataset", "town", *words)
    (found,) = listed(home, "--role", "analyst")
    assert (found["organisation"], found["purpose"], found["dataset"]) == ("Office", "Plans", "town")
    assert str(found["expires_at"]).startswith("2999-01-31T00:00")
    text = sparing("keys", "list", "--role", "analyst", home=home).stdout
    for shown in (str(found["id"]), "dataset town", "organisation Office", "allowance rho 0.5", "expires 2999-01-31"):
        assert shown in text
    assert api_key not in text
    assert api_key.rpartition("_")[2] not in text


def test_a_replaced_key_ends_and_a_revoked_one_too(home: Path) -> None:
    """From the next request on; a second revocation and an unknown principal are refused in one line."""
    first = new_key(home, "auditor", "--dataset", "town")
    (found,) = listed(home, "--role", "auditor")
    principal, path = str(found["id"]), "/v1/datasets/town/ledger"
    assert status(home, first, path) == 200
    second = sparing("keys", "replace", principal, home=home).stdout.strip()
    until(lambda: status(home, first, path) == 401)  # once the service's memory of the key, of a second, is over
    assert status(home, second, path) == 200
    revoked = sparing("keys", "revoke", principal, home=home)
    assert (revoked.returncode, revoked.stdout) == (0, f"{principal}: revoked\n")
    until(lambda: status(home, second, path) == 401)
    again = sparing("keys", "revoke", principal, home=home)
    said = "sparing: there is no such principal or dataset, or it is revoked already\n"
    assert (again.returncode, again.stderr) == (1, said)


def test_keys_for_the_individuals_of_a_file(home: Path, tmp_path: Path) -> None:
    """CSV in, CSV out; each key is its individual's own."""
    file = tmp_path / "people.csv"
    with file.open("w", encoding="utf-8-sig", newline="") as sink:
        csv.writer(sink).writerows([["number", "individual"], *([n, name] for n, name in enumerate(NAMES))])
    done = sparing("keys", "create-many", str(file), "--dataset", "town", home=home)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["individual"] for row in rows] == NAMES
    assert {status(home, row["key"], "/v1/me/budgets") for row in rows} == {200}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("person\nann\n", "the header must name a column individual"),
        ("individual\nann\nzoe\n", "individuals: 1 are not in the dataset, the first of them zoe"),
        ("individual\n", "individuals: 1 to 100000 individuals"),
        ("individual\nann\nann\n", "individuals: 1 are named twice, the first of them ann"),
        (None, "No such file"),
    ],
    ids=["column", "unknown", "empty", "twice", "missing"],
)
def test_a_file_that_cannot_be_used_makes_no_key(home: Path, tmp_path: Path, text: str | None, said: str) -> None:
    """One line names what is wrong."""
    before, file = listed(home), tmp_path / "people.csv"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    refused = sparing("keys", "create-many", str(file), "--dataset", "town", home=home)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert said in refused.stderr
    assert listed(home) == before


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--expires-at", "soon"), "expires-at must be a date or time"),
        (("--expires-at", "2001-01-01"), "expires_at"),
        (("--allowance-rho", "much"), "allowance-rho must be a decimal number"),
        (("--dataset", "nothing"), "dataset: no such dataset"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_wish_that_makes_no_sense_is_named(home: Path, option: tuple[str, str], said: str) -> None:
    """By its option or its field."""
    refused = sparing("keys", "create", "--role", "analyst", "--name", "a", *option, home=home)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert said in refused.stderr
