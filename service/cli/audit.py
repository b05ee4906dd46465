"""The command `sparing audit`."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Optional

import typer

from service.cli.options import whole

VICTIMS, SEED = whole(120, 12_000), whole(0)
UNDONE = 2
"""The exit status of an audit that could not be carried out."""


def audit(
    url: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it at run time
        typer.Option(help="The service to audit; by default one is started in a home that is thrown away."),
    ] = None,
    curator_key: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option(help="A curator's API key there.", envvar="SPARING_API_KEY", show_envvar=True),
    ] = None,
    victims: Annotated[int, typer.Option(parser=VICTIMS, help="How many people each dataset has.")] = 8192,
    rule: Annotated[
        Optional[list[str]],  # noqa: UP045 - as above
        typer.Option(help="A rule to audit, skip, drop or clip; may be repeated. By default all that are offered."),
    ] = None,
    accounting: Annotated[
        Optional[list[str]],  # noqa: UP045 - as above
        typer.Option(help="An accounting to audit, gdp, zcdp, rdp or pure; may be repeated. By default all of them."),
    ] = None,
    out: Annotated[Optional[Path], typer.Option(help="A file for the report as JSON.")] = None,  # noqa: UP045
    seed: Annotated[Optional[int], typer.Option(parser=SEED, help="Of the audit's own choices.")] = None,  # noqa: UP045
) -> None:
    """Attack a service by adversaries under each of its rules and accountings, and check it from outside.

    Exit status 0 where all checks passed, 1 where one failed, 2 where the audit could not be carried out. It registers
    datasets of its own, whose names begin with `audit-`, and archives them.
    """
    from service.run.audit import AuditUndone
    from service.run.audit import audit as run_audit

    tell, key = partial(print, file=sys.stderr, flush=True), None if url is None else curator_key
    try:
        chosen = {name: given for name, given in (("rules", rule), ("accountings", accounting)) if given}
        passed, text, document = run_audit(url=url, curator_key=key, tell=tell, victims=victims, seed=seed, **chosen)
        if out is not None:
            out.write_text(document, encoding="utf-8")
    except (AuditUndone, OSError) as failure:
        print(f"sparing: {failure}", file=sys.stderr)
        raise SystemExit(UNDONE) from failure
    print(text, end="")
    raise SystemExit(0 if passed else 1)
