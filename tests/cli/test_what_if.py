"""`sparing ledger what-if` on a deployment that runs: a short table, a row for each query, one JSON document."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from service.accounting.accountings import GAUSSIAN
from tests.e2e.homes import Homes
from tests.e2e.http_calls import CSV, asked, client
from tests.e2e.processes import new_key, served, sparing

EPSILON = GAUSSIAN.epsilon_of_units(2**38, Decimal("1e-6"))  # of the 1/4 rho that everybody has spent
WARNING = "not for release: these numbers are exact and depend on every record"
TABLES = {"people": {"kind": "individuals", "key": "person_id", "columns": {}}}
QUERIES = [{"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False} for sigma in (2, 1, 2)]
"""1/8, 1/2 and 1/8 rho: with a budget of 1/2, the second leaves all three people out."""


@pytest.fixture(scope="module")
def home(homes: Homes) -> Iterator[Path]:
    """The home of a service with a dataset of three people and three queries."""
    folder, wish = homes.begun(), {"name": "town", "guarantee": {"rho": "0.5"}, "capacity": 10, "tables": TABLES}
    with served(folder) as running:
        keys = [new_key(folder, role) for role in ("curator", "analyst")]
        with client(running.url, keys[0]) as curator, client(running.url, keys[1]) as analyst:
            curator.post("/v1/datasets", json=wish).raise_for_status()
            rows = b"person_id\nann\nbob\neve\n"
            curator.post("/v1/datasets/town/tables/people/rows", content=rows, headers=CSV).raise_for_status()
            for number, query in enumerate(QUERIES):
                asked(analyst, f"k{number}", "town", query).raise_for_status()
        yield folder


def what_if(home: Path, *options: str, dataset: str = "town") -> tuple[int, str, str]:
    """Status, stdout and stderr."""
    done = sparing("ledger", "what-if", "--dataset", dataset, *options, home=home)
    return done.returncode, done.stdout, done.stderr


def test_the_table_is_short_and_begins_with_the_warning(home: Path) -> None:
    """The own rule first; then clip, which is marked."""
    status, shown, complaints = what_if(home)
    assert (status, complaints) == (0, "")
    assert shown.splitlines() == [
        WARNING,
        "dataset                  town",
        "rule                     skip; its own is skip",
        "accounting               gdp; its own is gdp",
        "budget                   0.5 rho; its own is 0.5",
        "queries                  3, and 0 burns",
        "contributions            9",
        "kept                     66.667 %; the ledger itself 66.667 %",
        "shortened                0",
        "left out                 3, of them 0 paused",
        "first incomplete query   2",
        f"largest loss             0.5000 of the budget, epsilon {EPSILON:.4g} at delta 0.000001",
    ]
    status, shown, _ = what_if(home, "--rule", "clip")
    assert (status, "rule                     clip (approximate, by norms alone); its own is skip" in shown) == (
        0,
        True,
    )


def test_a_row_for_each_query_comes_before_the_totals(home: Path) -> None:
    """Under drop no individual comes back."""
    _, shown, _ = what_if(home, "--rule", "drop", "--queries")
    lines = shown.splitlines()
    assert lines[0] == WARNING
    assert [line.split() for line in lines[1:5]] == [
        ["sequence", "counted", "shortened", "left", "out", "paused", "unknown"],
        ["1", "3", "0", "0", "0", "0"],
        ["2", "0", "0", "3", "0", "0"],
        ["3", "0", "0", "3", "0", "0"],
    ]
    assert lines[5].split() == ["dataset", "town"]


def test_json_is_one_document(home: Path) -> None:
    """The queries are a list in it, where they are wished for."""
    _, shown, _ = what_if(home, "--rho", "1", "--json")
    found = json.loads(shown)
    assert next(iter(found)) == "not_for_release"
    assert (found["kept"], found["share_kept"], found["share_kept_here"]) == (9, 1.0, 6 / 9)
    assert (found["budget_rho"], found["own_budget_rho"], found["first_incomplete"]) == ("1", "0.5", None)
    assert "by_query" not in found
    _, shown, _ = what_if(home, "--epsilon", "1", "--delta", "1e-5", "--json", "--queries")
    found = json.loads(shown)
    assert [each["left_out"] for each in found["by_query"]] == [3, 3, 3]
    assert (found["delta"], found["kept"], found["largest_epsilon"]) == ("0.00001", 0, 0.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--delta", "1e-6"], "state either epsilon and delta, or rho"),
        (["--rho", "much"], "rho must be a decimal number in the digits 0 to 9, such as 0.5 or 1e-6"),
        (["--accounting", "zcdp"], "accounting: neither gdp nor an object of JSON"),
        (["--accounting", '{"kind": "rdp"}'], "accounting: rdp order Field required"),
        (["--accounting", '{"kind": "zcdp"}'], "the dataset states a rho; suppose a budget for another accounting"),
    ],
)
def test_a_budget_that_makes_no_sense_is_one_line(home: Path, options: list[str], said: str) -> None:
    """Nothing is printed on stdout."""
    assert what_if(home, *options) == (1, "", f"sparing: {said}\n")


def test_an_unknown_dataset_is_one_line(home: Path) -> None:
    """With its name."""
    assert what_if(home, dataset="nowhere") == (1, "", "sparing: there is no dataset nowhere\n")
