"""Embedded servers: a real Postgres and a real Valkey for a service that was given neither.

The servers are started in the main thread of a process, as its children, and end with that process, however it ends.
"""

from service.embedded.lock import HomeInUseError
from service.embedded.postgres import EmbeddedPostgres
from service.embedded.process import EmbeddedServerError
from service.embedded.servers import Servers, open_servers
from service.embedded.valkey import EmbeddedValkey

__all__ = ["EmbeddedPostgres", "EmbeddedServerError", "EmbeddedValkey", "HomeInUseError", "Servers", "open_servers"]
