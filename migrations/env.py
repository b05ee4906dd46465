"""Alembic's entry point. The URL comes from `service.store.postgres.registrations`, never from a file."""

from alembic import context
from sqlalchemy import create_engine, pool

from service.store.postgres.tables import METADATA, sqlalchemy_url


def run() -> None:
    """Migrate online, in one transaction, giving up quickly rather than queueing behind a long reader."""
    engine = create_engine(sqlalchemy_url(context.config.attributes["url"]), poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(connection=connection, target_metadata=METADATA, transaction_per_migration=False)
        with context.begin_transaction():
            context.execute("SET LOCAL lock_timeout = '5s'")
            context.run_migrations()


run()
