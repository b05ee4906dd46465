"""Failures that the operator of the service can do something about: each is told in one line, without a traceback."""

from typing import Final

from service.embedded import EmbeddedServerError
from service.store.postgres.pepper_proof import PepperMismatch
from service.store.postgres.pool import DurabilityTooWeak
from service.store.postgres.store import SchemaMismatch
from service.workflows.ports.store import StoreUnavailable

KNOWN: Final = (EmbeddedServerError, DurabilityTooWeak, SchemaMismatch, PepperMismatch, StoreUnavailable, OSError)
