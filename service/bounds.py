"""The bounds of one principal where no setting says otherwise (`service.settings.bound_settings`)."""

from typing import Final

WAITING_MAX: Final = 32
QUERIES_WAITING_MAX: Final = 1024
STRANGERS_MAX: Final = 1024
STREAMS_MAX: Final = 8
SPOOL_BYTES_MAX: Final = 2**31
SPOOL_BYTES_TOTAL_MAX: Final = 2**33
PARAMETERS_BYTES_MAX: Final = 2**30
