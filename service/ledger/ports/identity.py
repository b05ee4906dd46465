"""The port to an organisation's identity provider: where a browser is sent, and what the provider says of a person."""

from collections.abc import Mapping
from typing import Protocol


class ProviderUnavailable(Exception):
    """The identity provider gave no usable answer; the text says why, without anything that a person has sent."""


class IdentityRefused(Exception):
    """The provider's statement on a person was not accepted; the text names the failed check, such as `nonce`."""


class IdentityProvider(Protocol):
    """One identity provider. Thread-safe."""

    @property
    def issuer(self) -> str:
        """The provider's name for itself. With the issuer, equal subjects of two providers are told apart."""

    def authorization_url(self, *, state: str, nonce: str, verifier: str) -> str:
        """The address of the sign-in, with the hash of `verifier` but not `verifier` itself.

        Raises ProviderUnavailable.
        """

    def claims(self, code: str, *, nonce: str, verifier: str) -> Mapping[str, object]:
        """The verified claims of the person for whom the provider has issued `code`; the claim `sub` is a text.

        Raises ProviderUnavailable, and IdentityRefused where a check fails.
        """
