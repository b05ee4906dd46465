"""Alembic's entry point. The URL comes from `service.store.postgres.registrations`, never from a file."""

import psycopg
from alembic import context
from sqlalchemy import create_engine, pool


def run() -> None:
    """Migrate online, in one transaction, and give up quickly instead of queueing behind a long reader."""
    url: str = context.config.attributes["url"]
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            transaction_per_migration=False,
            on_version_apply=context.config.attributes["applied"],
        )
        with context.begin_transaction():
            context.execute("SET LOCAL lock_timeout = '5s'")
            context.run_migrations()


run()
