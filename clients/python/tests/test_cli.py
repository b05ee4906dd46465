"""`sparing-client` against a fake service: queries, previews, listings."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clients.python.tests.command_runs import COUNT, TABLES, Run, run_of
from sparing import SparingError, count, dummy_data
from sparing._cli_grammar import COMMANDS, EPILOG
from sparing.testing import FakeService

PAGE = (Path(__file__).parents[3] / "docs" / "command-line-client.md").read_text(encoding="utf-8")


class TestQuery:
    """Asking."""

    def test_an_answer_is_a_table_with_error_bars(self, run: Run, fake: FakeService) -> None:
        """Columns are aligned, wide characters counted as two, and the cost stands below."""
        fake.answer([126, 24])
        told = run("query", "shop", "--sql", "SELECT town, COUNT(*) FROM people GROUP BY town", "--sigma", "20")
        assert (told.status, told.err) == (0, "")
        assert told.out.splitlines()[:5] == [
            "town  select  value  ± 95 %",
            "Oslo  count     126      39",
            "北京  count      24      39",
            "",
            "sigma 20, worst case rho 0.00125, 0.125 % of the budget.",
        ]
        assert "Certified: nobody who kept the dataset's limit" in told.out

    @pytest.mark.parametrize("where", ["file", "stdin", "-"])
    def test_a_document_comes_from_a_file_or_standard_input(self, run: Run, tmp_path: Path, where: str) -> None:
        """With every member of the language."""
        document = {
            "version": 1,
            "from": "visits",
            "select": [{"count": {}}, {"count_individuals": {}}],
            "where": {"ge": [{"col": "people.age"}, 18]},
            "group_by": ["people.member", {"bin": {"column": "people.age", "edges": [0, 60, 120]}}],
            "per_individual": {"l2_clip": [9, 2], "rows": 4},
            "noise": {"half_width": 300, "confidence": 0.9},
            "rule": "skip",
            "reuse": False,
        }
        path = tmp_path / "query.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        words = {"file": [str(path)], "stdin": [], "-": ["-"]}[where]
        told = run("query", "shop", *words, "--json", stdin=json.dumps(document))
        assert told.status == 0
        assert told.json["dimension"] == 8
        assert told.json["labels"][0] == {"people.member": False, "people.age": "[0, 60)", "select": "count"}
        assert isinstance(told.json["idempotency_key"], str)

    def test_the_document_is_sent_as_it_is(self, run: Run, fake: FakeService) -> None:
        """And options take the place of its noise and its bounds."""
        run("query", "shop", stdin=COUNT)
        run("query", "shop", "--share", "0.01", "--l2-clip", "0.5", "--fresh", stdin=COUNT)
        document = json.loads(COUNT) | {"version": 1}
        assert fake.queries == [
            document,
            document | {"noise": {"share": 0.01}, "per_individual": {"l2_clip": 0.5}, "reuse": False},
        ]

    def test_sql_has_the_same_options(self, run: Run, fake: FakeService) -> None:
        """Noise, bounds and freshness."""
        text = "SELECT COUNT(*) FROM visits"
        told = run("query", "shop", "--sql", text, "--rho", "0.1", "--l2-clip", "3", "--rows", "2", "--fresh")
        assert told.status == 0
        assert fake.queries[0]["per_individual"] == {"l2_clip": 3, "rows": 2}
        assert fake.queries[0]["reuse"] is False

    def test_each_item_may_have_its_own_number(self, run: Run, fake: FakeService) -> None:
        """Between commas; one that is no number is a wrong command."""
        two = "SELECT COUNT(*), SUM(age) FROM people"
        run("query", "shop", "--sql", two, "--half-width", "10,5000", "--confidence", "0.9", "--l2-clip", "1,100")
        run("query", "shop", "--share", "0.05", "--weights", "3,1", stdin='{"select": [{"count": {}}]}')
        assert fake.queries[0]["noise"] == {"half_width": [10, 5000], "confidence": 0.9}
        assert fake.queries[0]["per_individual"] == {"l2_clip": [1, 100]}
        assert fake.queries[1]["noise"] == {"share": 0.05, "weights": [3, 1]}
        with pytest.raises(SystemExit):
            run("query", "shop", "--sql", two, "--sigma", "5,many")

    def test_laplace_noise_by_its_scale_or_by_the_word(self, run: Run, fake: FakeService) -> None:
        """Documents and SQL take both; options take the place of a document's noise, and a law of it stays."""
        told = run("query", "shop", "--scale", "20", stdin="{}")
        assert (told.status, told.err) == (0, "")
        assert told.out.splitlines()[3].startswith("scale 20, sigma 28.2843, worst case rho ")
        run("query", "shop", "--share", "0.05", "--mechanism", "laplace", stdin="{}")
        run("query", "shop", "--sql", "SELECT COUNT(*) FROM people", "--sigma", "9", "--mechanism", "laplace")
        run("query", "shop", stdin='{"mechanism": "laplace", "noise": {"scale": 5}}')
        run("query", "shop", "--sigma", "5", stdin='{"mechanism": "laplace", "noise": {"scale": 5}}')
        run("query", "shop", "--sigma", "6", "--mechanism", "gaussian", stdin='{"noise": {"scale": 5}}')
        noises = [(query["noise"], query.get("mechanism", "gaussian")) for query in fake.queries]
        assert noises == [
            ({"scale": 20.0}, "laplace"),
            ({"share": 0.05}, "laplace"),
            ({"sigma": 9.0}, "laplace"),
            ({"scale": 5}, "laplace"),
            ({"sigma": 5.0}, "laplace"),
            ({"sigma": 6.0}, "gaussian"),
        ]
        preview = run("preview", "shop", "--scale", "20", stdin="{}").out.splitlines()
        assert [line.split()[-1] for line in preview if line.startswith("scale")] == ["20"]
        with pytest.raises(SystemExit):
            run("query", "shop", "--share", "0.1", "--mechanism", "cauchy", stdin="{}")

    def test_averages_have_rows_of_their_own(self, run: Run) -> None:
        """In place of the linear items; and in JSON beside them."""
        words = (
            "query",
            "shop",
            "--sql",
            "SELECT town, COUNT(*), AVG(age) FROM people GROUP BY town",
            "--share",
            "0.5",
        )
        first, *rows = run(*words).out.splitlines()
        assert first.split() == ["town", "select", "value", "±", "95", "%"]
        assert [row.split()[:2] for row in rows[:4]] == [
            [town, item] for town in ("Oslo", "北京") for item in ("count", "mean(age)")
        ]
        found = run(*words, "--json").json
        assert [average["label"]["select"] for average in found["averages"]] == ["count", "mean(age)"] * 2
        assert found["averages"][1]["low_95"] < found["averages"][1]["value"] < found["averages"][1]["high_95"]
        assert len(found["values"]) == 6

    def test_digits_follow_the_half_width(self, run: Run, fake: FakeService) -> None:
        """Two digits of it, and as many of the value."""
        fake.answer(12.3456)
        told = run("query", "shop", "--l2-clip", "0.5", "--sigma", "0.1", stdin="{}")
        assert told.out.splitlines()[2] == "count   12.35    0.20"

    def test_many_numbers_are_cut(self, run: Run) -> None:
        """JSON has all of them."""
        document = '{"from": "visits", "select": [{"histogram": {"column": "item"}}], "per_individual": {"l2_clip": 2}}'
        told = run("query", "shop", "--sigma", "20", stdin=document)
        assert told.out.splitlines()[0].split() == ["select", "item", "value", "±", "95", "%"]
        assert "10000 of 40000 numbers; --json prints all." in told.out
        assert len(run("query", "shop", "--sigma", "20", "--json", stdin=document).json["values"]) == 40_000

    @pytest.mark.parametrize("command", ["query", "preview"])
    def test_warnings_stand_before_the_numbers(self, run: Run, command: str) -> None:
        """Warnings of an answer and of a preview alike, in the same output."""
        told = run(command, "shop", "--sigma", "0.5", stdin="{}")
        first, second, *_ = told.out.splitlines()
        assert first.startswith("warning: A vector longer than 0.707107 cannot be paid for")
        assert second.split()[0] in {"select", "numbers"}
        assert told.err == ""

    def test_warnings_are_no_part_of_json_alone(self, run: Run) -> None:
        """They go to standard error too."""
        told = run("query", "shop", "--sigma", "0.5", "--json", stdin="{}")
        assert told.status == 0
        assert told.json["warnings"]
        assert told.err.startswith("warning: A vector longer than 0.707107 cannot be paid for")

    def test_a_key_fetches_the_answer_of_an_earlier_try(self, run: Run, fake: FakeService) -> None:
        """A lost one is not charged again."""
        fake.break_connection(times=5, after=True)
        lost = run("query", "shop", stdin=COUNT)
        assert (lost.status, lost.out) == (3, "")
        key = re.findall(r"--idempotency-key (\S+);", lost.err)[0]
        told = run("query", "shop", "--idempotency-key", key, "--json", stdin=COUNT)
        assert (told.status, told.json["reused"], told.json["sequence"]) == (0, False, 1)
        assert len(run("history", "--json").json) == 1

    def test_an_interruption_tells_the_key(self, run: Run, fake: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
        """Status 130, as of every interrupted command."""

        def interrupted(query: Any) -> float:
            raise KeyboardInterrupt

        fake.answer(interrupted)
        told = run("query", "shop", "--idempotency-key", "mine", stdin=COUNT)
        assert (told.status, told.err) == (130, "Repeat it with --idempotency-key mine; it is charged only once.\n")


class TestPreview:
    """Asking nothing."""

    def test_it_shows_the_error_and_the_cost(self, run: Run, fake: FakeService) -> None:
        """In rows, or as JSON."""
        told = run("preview", "shop", stdin=COUNT)
        assert dict(re.findall(r"^(.+?)  +(.+)$", told.out, re.MULTILINE)) == {
            "numbers": "1",
            "sigma": "20",
            "half width (95 %)": "39",
            "grid": "1",
            "worst case": "rho 0.00125, 0.125 % of the budget",
            "allowance left": "no allowance is set",
            "clip": "1",
            "largest countable norm": "28.2843",
            "coverage": fake.client().queries.preview(dataset="shop", select=[count()], sigma=20).coverage_words,
            "delay": "0 ms",
        }
        told = run("preview", "shop", "--sql", "SELECT COUNT(*) FROM people", "--sigma", "20", "--json")
        assert told.json["worst_case_rho"].startswith("0.00125")
        assert fake.queries == []


class TestListings:
    """Datasets, history, allowances."""

    def test_datasets_are_listed(self, run: Run) -> None:
        """One in a row."""
        assert run("datasets").out.splitlines() == [
            "dataset  guarantee  budget rho  capacity  tables",
            "shop     rho                 1   1048576  people, visits",
        ]
        assert [each["name"] for each in run("datasets", "--json").json] == ["shop"]

    def test_a_dataset_is_shown_with_its_domains(self, run: Run) -> None:
        """The domains of every table."""
        assert run("show", "shop").out.splitlines()[5:] == [
            "",
            "people (individuals, key person_id)",
            "  town       category  Oslo, 北京",
            "  age        integer   0 to 120",
            "  member     boolean",
            "  limit_rho  budget",
            "",
            "visits (events, key person_id, at most 4096 rows an individual)",
            "  item  category  0 to 39999",
        ]
        assert run("show", "shop", "--json").json["tables"]["visits"]["rows_per_individual"] == 4096

    def test_history_is_newest_first_and_bounded(self, run: Run) -> None:
        """With the query in a few words."""
        for sigma in ("20", "21", "22"):
            run("query", "shop", "--sql", "SELECT COUNT(*) FROM people WHERE age > 3 GROUP BY town", "--sigma", sigma)
        told = run("history", "--limit", "2")
        first, *rows = told.out.splitlines()
        assert first.split()[:3] == ["released", "(UTC)", "dataset"]
        assert [re.split(r"  +", row)[4] for row in rows] == ["22", "21"]
        assert all("count of people" in row for row in rows)
        assert len(run("history", "--json").json) == 3
        assert run("history", "--limit", "0").status == 2

    def test_allowances_are_listed(self, run: Run, fake: FakeService) -> None:
        """With and without a bound."""
        assert run("allowances").out.splitlines()[1].split() == ["shop", "none", "set", "0"]
        environ = {"SPARING_URL": fake.url, "SPARING_API_KEY": fake.add_analyst(allowance_rho="0.5")}
        assert run("allowances", environ=environ).out.splitlines()[1].split() == ["shop", "0.5", "0", "0.5"]
        assert run("allowances", "--json", environ=environ).json[0]["left_rho"] == "0.5"

    def test_amounts_of_a_pure_dataset_are_in_epsilon(self, run: Run, fake: FakeService) -> None:
        """The unit stands in the header where all rows have it, else beside each amount."""
        fake.add_dataset(
            "ward", TABLES, rows=dummy_data(TABLES, individuals=50), accounting={"kind": "pure"}, epsilon="2"
        )
        told = run("query", "ward", "--scale", "20", stdin="{}")
        assert (told.status, told.err) == (0, "")
        assert "scale 20, sigma 28.2843, worst case epsilon 0.05, 2.5 % of the budget." in told.out.splitlines()
        assert re.search(r"worst case +epsilon 0.05,", run("preview", "ward", "--scale", "20", stdin="{}").out)
        assert re.search(r"budget +epsilon 2$", run("show", "ward").out, re.MULTILINE)
        assert re.search(r"guarantee +epsilon 2$", run("show", "ward").out, re.MULTILINE)
        header, row = run("history").out.splitlines()
        assert ("worst epsilon" in header, re.split(r"  +", row)[5]) == (True, "0.05")
        run("query", "shop", "--sigma", "20", stdin="{}")
        header, *rows = run("history").out.splitlines()
        assert "worst  " in header
        assert [re.split(r"  +", row)[5] for row in rows] == ["rho 0.00125", "epsilon 0.05"]
        assert re.search(r"^dataset +guarantee +budget +capacity", run("datasets").out)
        assert re.search(r"^ward +none set +epsilon 0.05", run("allowances").out, re.MULTILINE)

    def test_an_answer_is_shown_where_its_unit_is_not_told(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        """It was paid for, and its dataset cannot be read a moment later."""

        def away(*_: object, **__: object) -> None:
            raise SparingError("away")

        monkeypatch.setattr("sparing._resources.datasets.Datasets.get", away)
        told = run("query", "shop", "--scale", "20", stdin="{}")
        assert told.status == 0
        assert told.out.splitlines()[3].startswith("scale 20, sigma 28.2843, worst case 0.0")

    def test_an_empty_list_has_its_header(self, run: Run) -> None:
        """And no row."""
        assert run("history").out.splitlines() == [
            "released (UTC)  dataset  query  numbers  sigma  worst rho  asked  id"
        ]
        assert run("history", "--json").json == []

    def test_text_of_the_service_cannot_drive_the_terminal(
        self, run: Run, fake: FakeService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Escape characters are shown, not sent; a service that is not ours may have stored them."""
        tables = {"people": {**TABLES["people"], "columns": {"town": {"type": "category", "categories": ["\x1b[2J"]}}}}
        evil = replace(fake.client().datasets.get(dataset="shop"), tables=tables)
        monkeypatch.setattr("sparing._resources.datasets.Datasets.get", lambda _, **__: evil)
        assert "\x1b" not in run("show", "shop").out
        assert "\\x1b[2J" in run("show", "shop").out


def test_the_address_of_the_option_is_asked(run: Run, fake: FakeService) -> None:
    """Before that of the environment."""
    environ = {"SPARING_URL": "http://elsewhere", "SPARING_API_KEY": fake.api_key}
    fake.break_connection(times=5)
    assert f"{fake.url}/v1" in run("datasets", "--url", fake.url, environ=environ).err


def test_the_module_runs() -> None:
    """In a process of its own."""
    command = [sys.executable, "-m", "sparing", "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("usage: sparing-client")
    assert all(command.name in told.stdout for command in COMMANDS)


def test_the_page_names_every_command_option_and_status() -> None:
    """A command that is added is documented."""
    assert re.findall(r"^\| `([a-z]+)(?: [A-Z\[\] ]+)?` \|", PAGE, re.MULTILINE) == [each.name for each in COMMANDS]
    options = {option.name for command in COMMANDS for option in command.options}
    assert {name for name in options if f"`--{name}`" not in PAGE and f"`--{name} " not in PAGE} == set()
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == re.findall(r"^  (\d+)  ", EPILOG, re.MULTILINE)


def test_the_output_on_the_page_is_that_of_the_command() -> None:
    """For the answer that it shows."""
    ((words, shown),) = re.findall(r"^```text\n\$ sparing-client (.+)\n((?:.*\n)+?)```$", PAGE, re.MULTILINE)
    columns = {"town": {"type": "category", "categories": ["Oslo", "Bergen"]}}
    with FakeService() as fake:
        fake.add_dataset("shop", {"people": {"kind": "individuals", "key": "id", "columns": columns}})
        fake.answer([812, 307])
        assert run_of(fake)(*shlex.split(words)).out == shown
