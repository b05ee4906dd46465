"""The places of the servers' files."""

import os
import pwd
import stat
import tempfile
from pathlib import Path

import pytest

from service.embedded.home import (
    LOG_BYTES_MAX,
    POINTER,
    SOCKET_PATH_BYTES_MAX,
    Home,
    data_directories,
    find_home,
    is_shared,
    make_runtime,
    open_home,
    open_log,
    reachable,
    remove_runtime,
    write_private,
)
from service.embedded.process import EmbeddedServerError, OsAccount

STRANGER = OsAccount(uid=64_000, gid=64_000)


def mode_of(path: Path) -> int:
    """Return a path's permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_that_the_account_can_reach_is_used_in_place(
    home: Path, private_root: Path, account: OsAccount | None
) -> None:
    """The home itself holds the state, closed to others but for passing through as root."""
    opened = open_home(home, private_root=private_root)

    assert opened == Home(path=home, state=home, account=account)
    assert mode_of(home) == (0o700 if account is None else 0o711)
    assert not private_root.exists()


def test_a_home_that_the_account_cannot_reach_points_elsewhere(
    place: Path, private_root: Path, account: OsAccount | None
) -> None:
    """Below a closed directory root's state goes to a private one, found again by a pointer; nothing is opened up."""
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    home = closed / "home"
    opened = open_home(home, private_root=private_root)

    assert mode_of(closed) == 0o700
    if account is None:
        assert opened.state == home
        return
    assert opened.state.parent == private_root
    assert (home / POINTER).read_text().strip() == str(opened.state)
    assert reachable(opened.state, account)
    moved = home.rename(closed / "moved")
    assert find_home(moved) == Home(path=moved, state=opened.state, account=account)


def test_a_pointer_that_leads_nowhere_is_never_followed_by_an_empty_database(home: Path, private_root: Path) -> None:
    """Lost state is an error that says so, since starting empty would forget what everyone has spent."""
    home.mkdir()
    (home / POINTER).write_text("/nonexistent/state\n")
    with pytest.raises(EmbeddedServerError, match="/nonexistent/state, which does not exist"):
        open_home(home, private_root=private_root)


def test_an_unused_home_is_not_found_and_not_made(home: Path) -> None:
    """Looking for a home changes nothing."""
    assert find_home(home) is None
    assert not home.exists()


def test_a_home_in_use_keeps_the_owner_of_its_data(home: Path) -> None:
    """Data made by another account runs as that account when root starts it."""
    (home / "pgdata-18").mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(home / "pgdata-18", STRANGER.uid, STRANGER.gid)
    found = find_home(home)

    assert found == Home(path=home, state=home, account=STRANGER if os.geteuid() == 0 else None)


def test_a_home_that_cannot_be_made_is_an_error_of_ours(place: Path) -> None:
    """A file where the home should be is reported, not crashed on."""
    (place / "file").touch()
    with pytest.raises(EmbeddedServerError, match="as the home of the embedded servers"):
        open_home(place / "file" / "home")


@pytest.mark.parametrize(("mode", "passes"), [(0o711, True), (0o701, True), (0o710, False), (0o766, False)])
def test_reachable_goes_by_the_bits_for_others(place: Path, mode: int, passes: bool) -> None:
    """A stranger passes where others may search."""
    (place / "a" / "b").mkdir(parents=True)
    (place / "a").chmod(mode)

    assert reachable(place / "a", STRANGER) is passes


def test_the_owner_goes_by_the_owners_bits(place: Path) -> None:
    """The owner of a directory and its group are judged by their own bits, as the kernel does."""
    place.chmod(0o700)
    status = place.stat()
    as_owner, as_group = OsAccount(uid=status.st_uid, gid=1), OsAccount(uid=64_000, gid=status.st_gid)

    assert (reachable(place, as_owner), reachable(place, as_group)) == (True, False)
    place.chmod(0o610)
    assert (reachable(place, as_owner), reachable(place, as_group)) == (False, True)
    place.chmod(0o711)


def test_data_directories_are_listed_from_the_newest_version(place: Path) -> None:
    """Half-made directories do not count, and 18 is newer than 9."""
    for name in ("pgdata-9", "pgdata-18", "pgdata-18.new", "pgdata-old"):
        (place / name).mkdir()

    assert [data.name for data in data_directories(place)] == ["pgdata-18", "pgdata-9"]


def test_a_runtime_directory_is_short_private_and_gone_afterwards(account: OsAccount | None) -> None:
    """Sockets fit, and only the servers' account may enter."""
    runtime = make_runtime(account)

    assert len(os.fsencode(runtime / ".s.PGSQL.5432.lock")) <= SOCKET_PATH_BYTES_MAX
    assert mode_of(runtime) == 0o700
    assert runtime.stat().st_uid == (os.getuid() if account is None else account.uid)
    remove_runtime(runtime)
    assert not runtime.exists()


def test_the_account_nobody_is_one_that_others_share() -> None:
    """An account of a name of its own is not, nor is one without a name."""
    nobody = pwd.getpwnam("nobody")
    assert is_shared(OsAccount(uid=nobody.pw_uid, gid=nobody.pw_gid))
    assert not is_shared(OsAccount(uid=0, gid=0))
    assert not is_shared(OsAccount(uid=61_184, gid=61_184))


def test_a_runtime_directory_comes_back_where_it_was(place: Path, account: OsAccount | None) -> None:
    """Unless something is there by now, which is left alone."""
    first = make_runtime(account)
    remove_runtime(first)
    again = make_runtime(account, before=first)
    other = make_runtime(account, before=first)
    elsewhere = make_runtime(account, before=place / "precious")

    assert (again, again == other, mode_of(again)) == (first, False, 0o700)
    assert not (place / "precious").exists()
    for runtime in (again, other, elsewhere):
        remove_runtime(runtime)


def test_a_long_temporary_directory_is_passed_over(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a TMPDIR too long for a socket another place is found."""
    long = place / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    runtime = make_runtime(None)
    remove_runtime(runtime)

    assert long not in runtime.parents


def test_only_our_own_runtime_directories_are_removed(place: Path) -> None:
    """A note with something else in it, or a link, removes nothing."""
    (place / "precious").mkdir()
    (place / "sparing-link").symlink_to(place / "precious")
    remove_runtime(place / "precious")
    remove_runtime(place / "sparing-link")

    assert (place / "precious").is_dir()


def test_private_files_are_whole_and_private(place: Path) -> None:
    """A secret is readable by its owner only, and replaces the old one at once."""
    write_private(place / "secret", "one")
    write_private(place / "secret", "two")

    assert (place / "secret").read_text() == "two"
    assert mode_of(place / "secret") == 0o600
    assert [path.name for path in place.iterdir()] == ["secret"]


def test_a_large_log_makes_way(place: Path) -> None:
    """One older log is kept; logs are private."""
    log = place / "postgres.log"
    log.touch()
    os.truncate(log, LOG_BYTES_MAX + 1)
    os.close(open_log(log))

    assert log.stat().st_size == 0
    assert mode_of(log) == 0o600
    assert (place / "postgres.log.1").stat().st_size == LOG_BYTES_MAX + 1
