"""The bare endpoint of bench_hot_path: validate the body, commit one INSERT, answer. It keeps no promise but that."""

import socket
import sys
from typing import Annotated, Any

import psycopg
import uvicorn
from fastapi import FastAPI, Header
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from service.query.language import Query


def application(database_url: str) -> FastAPI:
    """One route, one table, the service's own pool size."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS bare (key text PRIMARY KEY, body jsonb, at timestamptz DEFAULT now())"
        )
    pool: ConnectionPool[psycopg.Connection[tuple[Any, ...]]] = ConnectionPool(
        database_url, min_size=10, max_size=10, open=True
    )
    app = FastAPI()

    @app.post("/queries")
    def ask(query: Query, idempotency_key: Annotated[str, Header()]) -> dict[str, Any]:
        with pool.connection() as connection:
            document = query.model_dump(mode="json", by_alias=True)
            connection.execute("INSERT INTO bare (key, body) VALUES (%s, %s)", [idempotency_key, Jsonb(document)])
        return {"id": idempotency_key, "values": [0]}

    return app


def main() -> None:
    """Serve on a free port and print the address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(application(sys.argv[1]), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
