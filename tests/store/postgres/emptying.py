"""A database without any schema of ours."""

import psycopg


def emptied(database_url: str) -> str:
    """The URL of a database in which nothing of ours is left, as `migrate` finds it at the very first start."""
    with psycopg.connect(database_url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("DROP SCHEMA records CASCADE")
        connection.execute("CREATE SCHEMA public")
    return database_url
