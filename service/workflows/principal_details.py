"""The facts of a principal: their checks, and the views of them."""

from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeVar
from uuid import uuid4

from service.core.units import rho_of_units, units_down
from service.workflows.model.errors import InvalidRequest
from service.workflows.model.rows import PrincipalRecord
from service.workflows.model.views import AnalystRow, NewPrincipal, Principal, PrincipalRow, Role

NAME_MAX: Final = 128
TEXT_MAX: Final = 200

Shown = TypeVar("Shown", AnalystRow, NewPrincipal, PrincipalRow)


def check_bounds(role: Role, dataset: str | None, individual: str | None) -> None:
    """Raise InvalidRequest unless the role and what it is bound to fit each other."""
    if (role == "individual") != (individual is not None):
        raise InvalidRequest.of("individual", "is given for the role individual, and for no other")
    if role == "individual" and dataset is None:
        raise InvalidRequest.of("dataset", "an individual's key belongs to one dataset")


def check_details(record: PrincipalRecord, now: datetime | None) -> None:
    """Raise InvalidRequest naming the field; the expiry is compared with `now` unless that is None."""
    if not 1 <= len(record.name) <= NAME_MAX or not record.name.isprintable():
        raise InvalidRequest.of("name", f"1 to {NAME_MAX} printable characters")
    for field, text in (("organisation", record.organisation), ("purpose", record.purpose)):
        if text is not None and not (1 <= len(text) <= TEXT_MAX and text.isprintable()):
            raise InvalidRequest.of(field, f"1 to {TEXT_MAX} printable characters")
    if record.allowance_units is not None and record.role != "analyst":
        raise InvalidRequest.of("allowance_rho", "only analysts have allowances")
    if now is not None and record.expires_at is not None and record.expires_at <= now:
        raise InvalidRequest.of("expires_at", "lies in the past")


def allowance_units(allowance_rho: Decimal | None) -> int | None:
    """An allowance in units, rounded down; None for no bound. Raises InvalidRequest."""
    if allowance_rho is not None and not 0 <= allowance_rho <= 2**20:
        raise InvalidRequest.of("allowance_rho", "must lie between 0 and 2^20")
    return None if allowance_rho is None else units_down(Fraction(allowance_rho))


def individual_record(dataset: str, individual: str, now: datetime, expires_at: datetime | None) -> PrincipalRecord:
    """A principal of an individual, without a key yet; named by the individual's key, where that can be a name."""
    is_name = 1 <= len(individual) <= NAME_MAX and individual.isprintable()
    return PrincipalRecord(
        id=uuid4(),
        role="individual",
        name=individual if is_name else "individual",
        dataset=dataset,
        individual=individual,
        allowance_units=None,
        key_hash=b"",
        created_at=now,
        expires_at=expires_at,
    )


def shown(kind: type[Shown], record: Principal, **more: Any) -> Shown:  # noqa: ANN401 - as `kind` declares
    """The principal as a curator is shown it: the facts that `kind` names, the allowance in rho, and `more`."""
    facts = {each.name: getattr(record, each.name) for each in fields(kind) if hasattr(record, each.name)}
    allowance = None if record.allowance_units is None else str(rho_of_units(record.allowance_units))
    return kind(**facts, allowance_rho=allowance, **more)
