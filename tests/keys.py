"""Keys of the tests' own."""

from typing import Final

from service.ledger.model.api_keys import Pepper

LEDGER_KEY: Final = Pepper(bytes(32)).ledger_key()
"""That of the replicas of `tests.factories`."""
