"""The bare endpoint of bench_hot_path: validate the body, commit one INSERT, answer. It makes no other promise.

Given the path of a file, it is the floor for the service's durability without any of its work. Its statement then also
moves a head and keeps an entry and an answer, and a record of 128 bytes is synced to the file before a response leaves.
Nothing is evaluated, charged, hashed or shared.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import psycopg
import uvicorn
from fastapi import FastAPI, Header
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from service.query.language import Query

_TABLES = (
    "CREATE TABLE IF NOT EXISTS bare (key text PRIMARY KEY, body jsonb, at timestamptz DEFAULT now())",
    "CREATE TABLE IF NOT EXISTS bare_head (id integer PRIMARY KEY, seq bigint)",
    "CREATE TABLE IF NOT EXISTS bare_entries (seq bigint PRIMARY KEY, body jsonb)",
    "INSERT INTO bare_head VALUES (1, 0) ON CONFLICT DO NOTHING",
)
_INSERT = "INSERT INTO bare (key, body) VALUES (%(key)s, %(body)s)"
_EXTEND = (
    "WITH moved AS (UPDATE bare_head SET seq = seq + 1 WHERE id = 1 RETURNING seq),"
    " entries AS (INSERT INTO bare_entries SELECT seq, %(body)s FROM moved)"
    " INSERT INTO bare (key, body) SELECT %(key)s, %(body)s FROM moved"
)


def application(database_url: str, *, statement: str, witness: Callable[[], None]) -> FastAPI:
    """An application with one route, one statement, and the service's pool size.

    `witness` is called after each commit.
    """
    with psycopg.connect(database_url, autocommit=True) as connection:
        for table in _TABLES:
            connection.execute(table)
    pool: ConnectionPool[psycopg.Connection[tuple[Any, ...]]] = ConnectionPool(
        database_url, min_size=10, max_size=10, open=True
    )
    app = FastAPI()

    @app.post("/queries")
    def ask(query: Query, idempotency_key: Annotated[str, Header()]) -> dict[str, Any]:
        document = Jsonb(query.model_dump(mode="json", by_alias=True))
        with pool.connection() as connection:
            connection.execute(statement, {"key": idempotency_key, "body": document})
        witness()
        return {"id": idempotency_key, "values": [0]}

    return app


def synced(path: str) -> Callable[[], None]:
    """A function that overwrites the next 128 bytes of a file, and returns when they are on the disk."""
    size, length = 128, 1 << 20
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(file, bytes(length), 0)
    os.fsync(file)
    door, offset = threading.Lock(), 0

    def witness() -> None:
        nonlocal offset
        with door:
            os.pwrite(file, os.urandom(size), offset)
            os.fdatasync(file)
            offset = (offset + size) % length

    return witness


def main(arguments: Sequence[str]) -> None:
    """Serve on a free port and print the address."""
    database_url, *paths = arguments
    app = application(
        database_url, statement=_EXTEND if paths else _INSERT, witness=synced(paths[0]) if paths else lambda: None
    )
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1:])
