"""Alembic's commands on a test database."""

import io

from alembic import command as alembic_command
from alembic.config import Config

from service.store.postgres.migrate import MIGRATIONS


def alembic(database_url: str, command: str, revision: str) -> None:
    """Run one of Alembic's commands on a database."""
    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = database_url
    getattr(alembic_command, command)(config, revision)
