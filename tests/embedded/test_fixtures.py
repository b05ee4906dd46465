"""The suite's own servers (tests/conftest.py)."""

import psycopg
import pytest
import redis


@pytest.mark.parametrize("attempt", [1, 2])
def test_every_test_has_a_fresh_migrated_database(database_url: str, attempt: int) -> None:
    """A table of an earlier test is not there; the migrations' are."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE mine (value int)")
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        fsync = connection.execute("SHOW fsync").fetchone()

    assert tables is not None
    assert tables[0] > 1
    assert fsync == ("on",)


@pytest.mark.parametrize("attempt", [1, 2])
def test_every_test_has_an_empty_cache(redis_url: str, attempt: int) -> None:
    """A key of an earlier test is not there."""
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("mine", attempt)
