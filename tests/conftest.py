"""Throw-away servers for the whole suite: one embedded Postgres and one Valkey per worker, made when first asked for.

The stores are imported inside the fixtures: the tests of the pure rooms must neither wait for them nor break with them.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.surroundings import LOCALE, ZONE

if TYPE_CHECKING:
    from tests.e2e.homes import Homes

# Small, because every worker has its own; durable all the same, because some tests are about what survives.
TEST_SETTINGS = {
    "max_connections": "60",
    "shared_buffers": "64MB",
    "timezone": ZONE,
    "log_timezone": ZONE,
    "lc_time": LOCALE,
    "lc_numeric": LOCALE,
    "lc_monetary": LOCALE,
}
TEMPLATE = "sparing_template"


@dataclass(frozen=True, kw_only=True, slots=True)
class PostgresServer:
    """A server of this worker's own."""

    dsn: str = field(repr=False)  # of the maintenance database `postgres`, as superuser
    data_directory: Path

    def url_of(self, database: str) -> str:
        """Return the URL of another database of the server."""
        return self.dsn.replace("@/postgres?", f"@/{database}?")


@pytest.fixture(scope="session")
def server_directory() -> Iterator[Path]:
    """A directory with a short path that an unprivileged account may pass through, gone after the session."""
    directory = Path(tempfile.mkdtemp(prefix="sparing-tests-"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def homes(server_directory: Path) -> "Homes":
    """Homes of `sparing serve`, each of one test."""
    from tests.e2e.homes import Homes  # noqa: PLC0415 -- see above

    return Homes(server_directory)


@pytest.fixture(scope="session")
def guide_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built guide, one for all workers."""
    from tests.guide.sites import built_site  # noqa: PLC0415 -- see above

    own = tmp_path_factory.getbasetemp()
    return built_site((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "guide")


@pytest.fixture(scope="session")
def postgres_server(server_directory: Path) -> Iterator[PostgresServer]:
    """An embedded Postgres, proven to be the one that was started here."""
    import psycopg  # noqa: PLC0415 -- see above

    from service.embedded import EmbeddedPostgres  # noqa: PLC0415 -- see above

    home = server_directory / "postgres"
    private_root = server_directory / "private"
    with EmbeddedPostgres(home, settings=TEST_SETTINGS, private_root=private_root, throw_away=True) as server:
        dsn = server.url_of("postgres")
        with psycopg.connect(dsn) as connection:
            row = connection.execute("SELECT current_setting('data_directory')").fetchone()
        assert row is not None
        assert server_directory in Path(row[0]).parents
        yield PostgresServer(dsn=dsn, data_directory=Path(row[0]))


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer) -> str:
    """The name of a database with every migration applied, to copy."""
    from service.store.postgres.registrations import migrate  # noqa: PLC0415 -- see above

    _execute(
        postgres_server.dsn, f"CREATE DATABASE {TEMPLATE} TEMPLATE template0 LOCALE_PROVIDER libc LOCALE '{LOCALE}'"
    )
    migrate(postgres_server.url_of(TEMPLATE))
    return TEMPLATE


@pytest.fixture
def new_database(postgres_server: PostgresServer, migrated_template: str) -> Iterator[Callable[[], str]]:
    """Makes fresh, migrated databases, as many as a test asks for, and gives their URLs."""
    names: list[str] = []

    def make() -> str:
        names.append(f"test_{uuid.uuid4().hex}")
        _execute(postgres_server.dsn, f"CREATE DATABASE {names[-1]} TEMPLATE {migrated_template}")
        return postgres_server.url_of(names[-1])

    yield make
    for name in names:
        _execute(postgres_server.dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database_url(new_database: Callable[[], str]) -> str:
    """The URL of a fresh, migrated database of this test's own."""
    return new_database()


@pytest.fixture(scope="session")
def valkey_url(server_directory: Path) -> Iterator[str]:
    """The URL of an embedded Valkey, proven to be the one that was started here."""
    import redis  # noqa: PLC0415 -- see above

    from service.embedded import EmbeddedValkey  # noqa: PLC0415 -- see above

    server = EmbeddedValkey(server_directory / "valkey", private_root=server_directory / "private")
    url = server.start()
    with redis.Redis.from_url(url, decode_responses=True) as client:
        assert server_directory in Path(client.config_get("dir")["dir"] or "").parents
    yield url
    server.stop()


@pytest.fixture
def redis_url(valkey_url: str) -> str:
    """The URL of a Valkey with nothing in it."""
    import redis  # noqa: PLC0415 -- see above

    with redis.Redis.from_url(valkey_url) as client:
        client.flushall()
    return valkey_url


def _execute(dsn: str, statement: str) -> None:
    """Run one statement that cannot be part of a transaction."""
    import psycopg  # noqa: PLC0415 -- see above
    from psycopg import sql  # noqa: PLC0415 -- see above

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL(statement))
