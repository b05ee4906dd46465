"""Errors that the operator can mend: each is printed in one line, without a traceback."""

from typing import Final

from service.embedded import EmbeddedServerError
from service.store.postgres.migrate import UnknownSchema
from service.store.postgres.pepper_proof import PepperMismatch
from service.store.postgres.pool import DurabilityTooWeak
from service.store.postgres.store import SchemaMismatch
from service.workflows.ports.store import StoreUnavailable

KNOWN: Final = (
    EmbeddedServerError,
    UnknownSchema,
    DurabilityTooWeak,
    SchemaMismatch,
    PepperMismatch,
    StoreUnavailable,
    OSError,
)
