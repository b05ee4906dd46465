"""The types of the settings of sign-in by an identity provider (`SPARING_OIDC_*`): addresses, and roles by claim."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic import ValidationInfo as Info

from service.numerals import DECIMAL
from service.query.names import fault_of_name
from service.settings.url_settings import url_of

_TEXT_MAX: Final = 200
_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}


class OidcGrant(BaseModel):
    """The role of all who have one value of the claim, and its bounds."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    role: Literal["curator", "analyst", "individual", "auditor"]
    dataset: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")] | None = None
    allowance_rho: Annotated[Decimal, DECIMAL, Field(ge=0, le=2**20, allow_inf_nan=False)] | None = None
    organisation: Annotated[str, Field(min_length=1, max_length=_TEXT_MAX)] | None = None
    purpose: Annotated[str, Field(min_length=1, max_length=_TEXT_MAX)] | None = None

    def fault(self) -> str | None:
        """The first contradiction; None without one."""
        if self.role == "individual" and self.dataset is None:
            return "the role individual needs a dataset"
        is_described = (self.allowance_rho, self.organisation, self.purpose) != (None, None, None)
        if is_described and self.role != "analyst":
            return "allowance_rho, organisation and purpose are an analyst's"
        stated = {"organisation": self.organisation, "purpose": self.purpose}
        faults = {name: fault_of_name(text, _TEXT_MAX) for name, text in stated.items() if text is not None}
        return next((f"{name} {fault}" for name, fault in faults.items() if fault is not None), None)


_ROLES: Final = TypeAdapter(dict[Annotated[str, Field(min_length=1)], OidcGrant])


def _roles(text: str) -> Mapping[str, OidcGrant]:
    try:
        grants = _ROLES.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"must be a JSON object of roles by value of the claim: {place}: {first['msg']}") from None
    faults = [f"{value}: {fault}" for value, grant in grants.items() if (fault := grant.fault()) is not None]
    if faults or not grants:
        raise ValueError(faults[0] if faults else "must name at least one value of the claim")
    return grants


def _is_safe(text: str) -> bool:
    """Tell whether it is an https URL, or an http one on this machine, without a user, query or fragment."""
    parts = urlsplit(text)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    is_plain = parts.hostname and parts.username is None and parts.port != 0 and not (parts.query or parts.fragment)
    return bool(is_safe and is_plain) and text.isascii() and text.isprintable() and " " not in text


def _is_origin(text: str) -> bool:
    return _is_safe(text) and not urlsplit(text).path


def _issuer(text: str, info: Info) -> str:
    needed = ("oidc_client_id", "oidc_origin", "oidc_roles")
    missing = [f"SPARING_{name.upper()}" for name in needed if info.data.get(name) is None]
    if missing:
        raise ValueError(f"needs {' and '.join(missing)}")
    has_individuals = any(grant.role == "individual" for grant in info.data["oidc_roles"].values())
    if has_individuals and info.data.get("oidc_individual_claim") is None:
        raise ValueError("needs SPARING_OIDC_INDIVIDUAL_CLAIM, because a role is individual")
    return text


OidcOrigin = Annotated[str, url_of("https://host or https://host:port (http on loopback alone)", _is_origin)]
OidcRoles = Annotated[Mapping[str, OidcGrant], BeforeValidator(_roles)]
OidcIssuer = Annotated[
    str,
    url_of("an https URL without a user, query or fragment (http on loopback alone)", _is_safe),
    AfterValidator(_issuer),
]
