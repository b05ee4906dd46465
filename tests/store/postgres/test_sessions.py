"""Sessions on the way out: a signal that ends the process leaves none of them in the middle of a statement."""

from collections.abc import Callable

import pytest

from service.store.postgres.sessions import SessionPool


def end_after_sending(pool: SessionPool, statement: bytes | None) -> None:
    """Exit in a session right after sending a statement: a signal may strike just then."""
    with pool.one() as session:
        session.execute("SELECT 1")
        if statement is not None:
            session.pgconn.send_query(statement)
        raise SystemExit(0)


@pytest.mark.parametrize("statement", [None, b"SELECT 1", b"SELECT pg_sleep(3600)"], ids=["none", "quick", "long"])
def test_a_statement_that_is_under_way_at_the_end_is_cancelled_without_a_word(
    new_database: Callable[[], str], caplog: pytest.LogCaptureFixture, statement: bytes | None
) -> None:
    """The exception leaves at once, nothing is logged, and the same session serves the next statement."""
    pool = SessionPool(new_database(), connections_max=1)
    before = pool.rows("SELECT pg_backend_pid()", [])
    with pytest.raises(SystemExit):
        end_after_sending(pool, statement)
    assert pool.rows("SELECT pg_backend_pid()", []) == before
    pool.close()
    assert [each for each in caplog.records if each.name.startswith(("psycopg", "sparing"))] == []
