"""`sparing serve` and its neighbours on the command line, as processes, on real embedded servers."""

import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from service.cli.app import main
from service.embedded import EmbeddedPostgres, EmbeddedValkey
from service.ledger.model.api_keys import Pepper
from tests.e2e.homes import CHARGE_UNITS, Homes, SurveyHome
from tests.e2e.http_calls import ask, client
from tests.e2e.processes import SPARING, children_of, environment, living, served, sparing, sparing_apart, unexpected
from tests.rotation import some_of
from tests.waiting import PATIENCE_S, until


def test_killed_it_leaves_no_process_and_loses_nothing(survey_home: SurveyHome) -> None:
    """Kill -9 after an answer: its servers end; the next start gives the same bytes for the key, charged once."""
    home, curator_key, analyst_key = survey_home.path, survey_home.curator_key, survey_home.analyst_key
    with served(home) as first:
        answered = ask(first.url, analyst_key, "k-1")
        assert answered.status_code == 200
        servers = children_of(first.process.pid)
        assert len(servers) >= 3
        first.kill()
    until(lambda: not living(servers))

    with served(home) as second:
        again = ask(second.url, analyst_key, "k-1")
        assert (again.status_code, again.content) == (200, answered.content)
        with client(second.url, curator_key) as curator:
            ledger = curator.get("/v1/datasets/survey/ledger").json()["items"]
            budgets = curator.get("/v1/datasets/survey/budgets").json()["items"]
        assert [(row["sequence"], row["charged"]) for row in ledger] == [(1, 3)]
        assert {row["spent_units"] for row in budgets} == {CHARGE_UNITS}
    verified = sparing("ledger", "verify", home=home)
    told = "survey: 1 entries, 1 answers, 1 acts, 3 accounts verified, 0 findings\n"
    assert (verified.returncode, verified.stdout) == (0, told)


@pytest.mark.parametrize("descendants", [*some_of([0, 1, 3, 6], 2), None])
def test_a_signal_at_any_instant_of_a_start_leaves_nothing_and_says_nothing(
    home: Path, descendants: int | None
) -> None:
    """SIGTERM once so many processes are begun, or connections are taken: no process, no server, no traceback."""
    command = [*SPARING, "serve", "--home", str(home), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        if descendants is None:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready ")
        else:
            until(lambda: len(children_of(process.pid)) >= descendants)
        begun = children_of(process.pid)
        process.terminate()
        _, complaints = process.communicate(timeout=PATIENCE_S)
    statuses = {0} if descendants is None else {0, -signal.SIGTERM}
    assert (process.returncode in statuses, unexpected(complaints)) == (True, [])
    assert living(begun) == set()
    assert (EmbeddedPostgres(home).attach(), EmbeddedValkey(home).attach()) == (None, None)


@pytest.mark.parametrize(
    ("command", "place", "has_home"),
    some_of(
        [
            ("serve", "service.run.uvicorn_server:GracefulServer.listen_to_signals", True),
            ("serve", "service.run.composition:_import_adapters", False),
            ("serve --workers 2", "service.run.workers:Supervisor.run", True),
            ("demo --stay", "service.run.serve:_server", True),
        ],
        2,
    ),
)
def test_a_signal_whose_exception_is_dropped_ends_a_start(
    homes: Homes, command: str, place: str, *, has_home: bool
) -> None:
    """At the next of its looks: while servers come up before anything stands in them, and at the latest when ready."""
    home = homes.begun() if has_home else homes.missing()
    arguments = [place, *command.split(), "--home", str(home), "--port", "0"]
    line, said = [sys.executable, "-m", "tests.starts", *arguments], []
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        for printed in process.stdout or ():
            said.append(printed)
            if printed.startswith("ready"):
                process.terminate()  # it was lost
        _, complaints = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, unexpected(complaints)) == (0, [])
    assert said in ([], ["Starting Postgres, Valkey and the service …\n"])
    assert (home / "pepper").exists() is has_home
    assert (EmbeddedPostgres(home).attach(), EmbeddedValkey(home).attach()) == (None, None)


COMMANDS = [
    ("migrate",),
    ("calibrate",),
    ("keys", "create", "--role", "curator", "--name", "ann"),
    ("keys", "create-many", "people.csv", "--dataset", "survey"),
    ("keys", "list"),
    ("keys", "replace", str(UUID(int=1))),
    ("keys", "revoke", str(UUID(int=1))),
    ("ledger", "verify"),
    ("ledger", "reconcile", "--dataset", "survey", "--yes"),
    ("ledger", "rebuild-answer", "--dataset", "survey", "--sequence", "1", "--key", "k"),
    ("ledger", "prune", "--dataset", "survey", "--before", "7"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_but_serve_and_demo_begins_a_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """A home that was spelt wrong must not pass for one without damage, or get a key that opens nothing."""
    (tmp_path / "people.csv").write_text("individual\nann\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["sparing", *command, "--home", "nowhere"])
    for name in ("DATABASE_URL", "SPARING_HOME"):
        monkeypatch.delenv(name, raising=False)
    missing = tmp_path / "nowhere"
    with pytest.raises(SystemExit) as ended:
        main()
    said = f"sparing: there is no deployment in {missing}: nothing was done; `sparing serve` begins one\n"
    assert (ended.value.code, capsys.readouterr()) == (1, ("", said))
    assert not missing.exists()


@pytest.mark.parametrize(
    "command",
    [("serve", "--port", "0"), ("doctor",), ("keys", "list"), ("ledger", "verify"), ("backup", "copy")],
    ids=" ".join,
)
def test_a_home_whose_database_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """It must not pass for one in which nothing was ever done; a new database is not begun in its place."""
    home = tmp_path / "home"
    (home / "valkey").mkdir(parents=True)
    (home / "pepper").write_text("ab" * 32, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["sparing", *command, "--home", str(home)])
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert said.err.startswith(f"sparing: the database in {home} is gone, and was there once: nothing was done")
    assert sorted(path.name for path in home.iterdir()) == ["pepper", "valkey"]


def test_a_database_that_lacks_what_was_witnessed_is_told(answered_home: SurveyHome, database_url: str) -> None:
    """By every command that would show an empty one: here beside an empty database elsewhere."""
    home = answered_home.path
    elsewhere = {"DATABASE_URL": database_url}
    lost = (
        f"sparing: the database is empty, and the witness in {home / 'witness'} has seen 1 datasets: nothing was done"
    )
    for command in ("keys", "list"), ("ledger", "verify"), ("serve", "--port", "0"), ("migrate",):
        run = sparing_apart if command[0] == "serve" else sparing
        done = run(*command, home=home, **elsewhere)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith(lost)
    pepper, salt = Pepper(bytes.fromhex((home / "pepper").read_text(encoding="ascii"))), bytes(32)
    with psycopg.connect(database_url) as connection:  # and in one that an earlier start had begun
        connection.execute("INSERT INTO pepper (salt, proof) VALUES (%s, %s)", [salt, pepper.database_proof(salt)])
    absent = "survey: the database does not have this dataset"
    lost = f"sparing: {absent}; witnessed and missing: ledger entries 1 to 3, act 1"
    listed = sparing("keys", "list", home=home, **elsewhere)
    verified = sparing("ledger", "verify", home=home, **elsewhere)
    examined = sparing("doctor", home=home, **elsewhere)
    assert [listed.returncode, verified.returncode, examined.returncode] == [0, 1, 1]
    assert listed.stderr.startswith(lost)
    assert verified.stderr.startswith(lost)
    assert absent in examined.stdout + examined.stderr


def test_beside_another_database_a_home_that_is_named_must_exist(tmp_path: Path) -> None:
    """It holds the pepper and the witness; without a name all of it may come from settings."""
    refused = sparing("keys", "list", home=tmp_path / "nowhere", DATABASE_URL="postgresql://127.0.0.1:1/none")
    assert (refused.returncode, (tmp_path / "nowhere").exists()) == (1, False)
    assert "there is no deployment in" in refused.stderr


def test_a_deployment_without_datasets_verifies_and_says_so(home: Path) -> None:
    """The command looked, and there was nothing to look at."""
    empty = sparing("ledger", "verify", home=home)
    assert (empty.returncode, empty.stdout) == (0, "no dataset is registered here\n")


def test_a_database_of_an_older_checkout_is_refused_in_one_line(tmp_path: Path, database_url: str) -> None:
    """No version that wrote it was released, and the line says so."""
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0030'")
    for run, command in (
        (sparing, ("migrate",)),
        (sparing_apart, ("serve", "--port", "0")),
        (sparing, ("ledger", "verify")),
    ):
        refused = run(*command, home=tmp_path, DATABASE_URL=database_url)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
        assert refused.stderr.startswith("sparing: the database has schema 0030, which was never released: ")


def test_migrate_is_ready_to_be_run_before_anything(tmp_path: Path, database_url: str) -> None:
    """The one-shot container runs it first; a second run does no harm."""
    for _ in range(2):
        done = sparing("migrate", home=tmp_path / "none", DATABASE_URL=database_url)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith(", the newest: nothing to do\n")
    assert not (tmp_path / "none").exists()
