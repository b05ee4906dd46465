"""The check of a dataset's rows against its registration: the genesis is computed again from the first version.

Each later version is bound by the act of its extension. The genesis binds the name, the guarantee as written, the
accounting, the monitor, the capacity, the tables, the rule, the comparison of keys and the floor. For a rho the row
holds only the units, so every decimal of up to DIGITS_MAX digits after the point that gives those units is tried.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from itertools import zip_longest
from math import ceil
from typing import Final

import rfc8785

from service.accounting.accountings import OrderTooLow
from service.core.charge import UNITS_PER_RHO
from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import genesis
from service.ledger.model.rows import DatasetRecord, RegistrationHistory, registration_digest
from service.ledger.model.stated_guarantee import GuaranteeMismatch, StatedGuarantee

DIGITS_MAX: Final = 16
"""How many digits after the point a rho has at most.

As 2^-40 rho is about 10^-12, up to ten thousand decimals are tried.
"""
_FEW_DIGITS: Final = 12
_LARGEST_EXPONENT: Final = 6
_RHO, _FLOOR = "\0rho", "\0floor"


def check_registration(history: RegistrationHistory, acts: Sequence[JournalAct]) -> list[str]:
    """Findings about the rows, for the operator; empty if they give the genesis and agree with the acts."""
    return [*_wrong_with_first(history.first), *_wrong_with_later(history, acts)]


def _wrong_with_later(history: RegistrationHistory, acts: Sequence[JournalAct]) -> Iterator[str]:
    """Findings about what was extended or archived after the registration."""
    place = f"datasets row {history.now.id}"
    extensions = [act for act in acts if act.act == "extend"]
    versions = list(history.versions())
    told = [(act.detail.get("version"), act.detail.get("digest")) for act in extensions]
    held = [(each.version, registration_digest(each.capacity, each.schema)) for each in versions[1:]]
    for said, made in zip_longest(told, held):
        if said != made:
            version = (said or made or (0, ""))[0]
            yield f"{place}: version {version} of the registration is not the one that its act has made"
    if [act.at_seq for act in extensions] != [each.until_seq for each in history.earlier]:
        yield f"{place}: the earlier versions of the registration end elsewhere than the acts say"
    if history.now.is_archived != any(act.act == "archive" for act in acts):
        yield f"{place}: says archived {history.now.is_archived}, the acts say otherwise"


def _wrong_with_first(record: DatasetRecord) -> list[str]:
    place = f"datasets row {record.id}"
    stated = record.guarantee
    if stated.epsilon is not None:
        try:
            units = StatedGuarantee.model_validate(asdict(stated)).budget_units(record.accounting)
        except (OrderTooLow, GuaranteeMismatch) as refusal:
            return [f"{place}: its accounting does not give its guarantee: {refusal}"]
        if units != record.budget_units:
            return [f"{place}: says budget_units {record.budget_units}, its accounting and guarantee give {units}"]
    if any(genesis(record.name, each) == record.genesis for each in _registrations(record)):
        return []
    return [f"{place}: what it says of the registration does not give its genesis"]


def spellings(units: int, *, digits_max: int = DIGITS_MAX) -> Iterator[str]:
    """Every decimal that is `units` of 2^-40 rho, rounded down, as text, the shortest first."""
    for exponent in range(_LARGEST_EXPONENT, -digits_max - 1, -1):
        step = Fraction(10) ** exponent * UNITS_PER_RHO
        for coefficient in range(ceil(units / step), ceil((units + 1) / step)):
            yield str(Decimal((0, tuple(map(int, str(coefficient))), exponent)))


def _registrations(record: DatasetRecord) -> Iterator[bytes]:
    """Every canonical registration from which the row can have been made."""
    is_rho = record.guarantee.epsilon is None
    if record.limit_floor_units == (0 if record.schema.has_budget_column else record.budget_units):  # its default
        template = _template(record, has_rho=is_rho, has_floor=False)
        for rho in spellings(record.budget_units) if is_rho else ("",):
            yield template.replace(_quoted(_RHO), _quoted(rho))
    template = _template(record, has_rho=is_rho, has_floor=True)
    few = list(spellings(record.budget_units, digits_max=_FEW_DIGITS)) if is_rho else [""]
    for floor in spellings(record.limit_floor_units):  # tried in order: one of the first few is nearly always right
        stated = template.replace(_quoted(_FLOOR), _quoted(floor))
        yield from (stated.replace(_quoted(_RHO), _quoted(rho)) for rho in few)


def _template(record: DatasetRecord, *, has_rho: bool, has_floor: bool) -> bytes:
    return rfc8785.dumps(
        {
            "accounting": record.accounting.document,
            **({} if record.monitor is None else {"monitor": record.monitor.document}),
            **({} if record.keys == "exact" else {"keys": record.keys}),
            **({"instance": record.instance} if record.instance > 1 else {}),
            "name": record.name,
            "guarantee": {
                "epsilon": record.guarantee.epsilon,
                "delta": record.guarantee.delta,
                "rho": _RHO if has_rho else None,
            },
            "capacity": record.capacity,
            "tables": record.schema.model_dump(mode="json", by_alias=True),
            "rule": record.rule,
            "limit_floor_rho": _FLOOR if has_floor else None,
        }
    )


def _quoted(text: str) -> bytes:
    return rfc8785.dumps(text)
