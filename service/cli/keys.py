"""The commands on keys: `sparing keys create | create-many | list | replace | revoke`. They work while `serve` runs."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional
from uuid import UUID

import typer

from service.cli.options import Home, fail, opened_service, tell, tell_whole_losses
from service.ledger.model.spreadsheets import csv_text
from service.numerals import decimal_of

if TYPE_CHECKING:
    from service.ledger.model.views import PrincipalRow
    from service.workflows.principals import Principals

PAGE_SIZE = 1000
COLUMN = "individual"

keys = typer.Typer(no_args_is_help=True, help="API keys: create, create-many, list, replace, revoke.")


RoleName = Literal["curator", "analyst", "individual", "auditor"]
Text = Optional[str]  # noqa: UP045 - typer reads it at run time
ExpiresAt = Annotated[Text, typer.Option(help="The date or time (UTC) from which the key is unknown.")]
PrincipalId = Annotated[UUID, typer.Argument(help="The principal's id, as `keys list` shows it.")]


@keys.command()
def create(  # noqa: PLR0913, PLR0917 - an option each
    role: Annotated[RoleName, typer.Option(help="The role of the key.")],
    name: Annotated[str, typer.Option(help="The name of its holder.")],
    dataset: Annotated[Text, typer.Option(help="The one dataset it is good for.")] = None,
    individual: Annotated[Text, typer.Option(help="The individual whose budget it shows.")] = None,
    allowance_rho: Annotated[Text, typer.Option(help="An analyst's worst-case allowance.")] = None,
    organisation: Annotated[Text, typer.Option(help="An analyst's organisation, which individuals are shown.")] = None,
    purpose: Annotated[Text, typer.Option(help="The purpose of an analyst's queries, shown likewise.")] = None,
    expires_at: ExpiresAt = None,
    home: Home = None,
) -> None:
    """Create a principal and print its key, alone, on one line."""
    allowance, expiry = _decimal(allowance_rho), _instant(expires_at)
    with _principals(home) as principals:
        _, api_key = principals.create(
            role=role,
            name=name,
            dataset=dataset,
            individual=individual,
            allowance_rho=allowance,
            organisation=organisation,
            purpose=purpose,
            expires_at=expiry,
        )
    print(api_key)


@keys.command()
def create_many(
    file: Annotated[Path, typer.Argument(help=f"CSV with a column `{COLUMN}`, one individual in a row.")],
    dataset: Annotated[str, typer.Option(help="The dataset of the individuals.")],
    expires_at: ExpiresAt = None,
    home: Home = None,
) -> None:
    """Create a key for each individual of a file, all or none, and print them once as CSV: individual, key."""
    individuals, expiry = _individuals(file), _instant(expires_at)
    with _principals(home) as principals:
        made = principals.create_individuals(dataset, individuals, expires_at=expiry)
    sys.stdout.write(csv_text([(COLUMN, "key"), *made]))


@keys.command("list")
def list_keys(
    role: Annotated[Optional[RoleName], typer.Option(help="Only of this role.")] = None,  # noqa: UP045 - as above
    dataset: Annotated[Text, typer.Option(help="Only of this dataset.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object in a line.")] = False,
    home: Home = None,
) -> None:
    """List the principals, active and revoked; never a key."""
    from pydantic import TypeAdapter

    from service.ledger.model.views import PrincipalRow

    with opened_service(home) as opened:
        tell_whole_losses(opened)
        rows = [each for each in _all(opened.replica.principals) if role is None or each.role == role]
    rows = [each for each in rows if dataset is None or each.dataset == dataset]
    if json:
        for row in rows:
            print(TypeAdapter(PrincipalRow).dump_json(row).decode())
        return
    for row in rows:
        tell(_line(row))
    if not rows:
        print("no such principal is here")


@keys.command()
def replace(principal: PrincipalId, home: Home = None) -> None:
    """Replace a principal's key, and print the new one, alone, on one line. The old one ends."""
    with _principals(home) as principals:
        _, api_key = principals.replace_key(principal)
    print(api_key)


@keys.command()
def revoke(principal: PrincipalId, home: Home = None) -> None:
    """Revoke a principal's key, for good."""
    with _principals(home) as principals:
        principals.revoke(principal)
    print(f"{principal}: revoked")


@contextmanager
def _principals(home: Path | None) -> Iterator["Principals"]:
    """The principals of an existing home; a refusal ends the command with its fields."""
    from service.ledger.model.errors import InvalidRequest, NotFound

    with opened_service(home) as opened:
        try:
            yield opened.replica.principals
        except InvalidRequest as refusal:
            fail("; ".join(f"{error.field}: {error.message}" for error in refusal.errors))
        except NotFound:
            fail("there is no such principal or dataset, or it is revoked already")


def _all(principals: "Principals") -> Iterator["PrincipalRow"]:
    cursor: str | None = None
    while True:
        page = principals.listed(cursor=cursor, limit=PAGE_SIZE)
        yield from page.items
        if page.next is None:
            return
        cursor = page.next


def _line(row: "PrincipalRow") -> str:
    """One principal: id, role, name, and whatever else is stated."""
    facts = {
        "dataset": row.dataset,
        "individual": row.individual,
        "allowance rho": row.allowance_rho,
        "organisation": row.organisation,
        "purpose": row.purpose,
        "expires": _date(row.expires_at),
        "revoked": _date(row.revoked_at),
    }
    stated = [f"{name} {value}" for name, value in facts.items() if value is not None]
    return ", ".join([f"{row.id}  {row.role:10}  {row.name}", *stated])


def _individuals(file: Path) -> list[str]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as source:
            reader = csv.DictReader(source)
            if COLUMN not in (reader.fieldnames or []):
                fail(f"{file}: the header must name a column {COLUMN}")
            return [str(row[COLUMN]) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        fail(f"{file}: {error}")


def _decimal(text: str | None) -> Decimal | None:
    try:
        return None if text is None else decimal_of(text)
    except ValueError:
        fail("allowance-rho must be a decimal number")


def _instant(text: str | None) -> datetime | None:
    try:
        instant = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        fail("expires-at must be a date or time such as 2026-12-31 or 2026-12-31T12:00")
    return instant if instant is None or instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def _date(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="minutes")
