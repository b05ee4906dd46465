"""`sparing schema infer`: a proposal for a schema, made on the curator's own machine.

The Python client holds the logic, and not the service: the data is where the client is, and nothing of it should come
near a server before the schema is settled. The production image holds no client, so there the command says what is
missing; in a clone both are installed.
"""

import json
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from service.cli.options import fail

__all__ = ["schema"]

schema = typer.Typer(no_args_is_help=True, help="Schemas of datasets.")


@schema.callback()
def _commands() -> None:
    """Schemas of datasets."""


@schema.command()
def infer(
    file: Annotated[Path, typer.Argument(help="CSV, NDJSON, Parquet or Arrow, CSV and NDJSON also in gzip.")],
    table: Annotated[Optional[str], typer.Option(help="The table's name; by default the file's.")] = None,  # noqa: UP045
    key: Annotated[Optional[str], typer.Option(help="The column that names the individual.")] = None,  # noqa: UP045
    kind: Annotated[
        Optional[Literal["individuals", "events"]],  # noqa: UP045 - typer reads it at run time
        typer.Option(help="One row for each individual, or events; by default whether a key repeats."),
    ] = None,
) -> None:
    """Propose a schema as JSON. It reads the file here, sends nothing, and needs no home.

    Each domain read off the data carries a member `confirm`; no registration is accepted until it is removed.
    """
    try:
        from sparing import infer_schema
    except ModuleNotFoundError:
        fail("schema infer needs the Python client on this machine: pip install ./clients/python")
    try:
        proposal = infer_schema(file, table=table, key=key, kind=kind)
    except (OSError, ValueError) as error:
        fail(f"{file}: {error}")
    print(json.dumps(proposal, indent=2, ensure_ascii=False))
