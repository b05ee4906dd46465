"""The command `sparing doctor`."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from service.cli.options import Home, existing_settings_of, tell


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of lines.")] = False,
    home: Home = None,
) -> None:
    """Look at everything that this deployment needs, and change nothing. Exit status 1 when a check has failed."""
    from service.run.doctor import examine

    results = []
    for result in examine(existing_settings_of(home)):
        results.append(result)
        if not as_json:
            tell(result)
    if as_json:
        print(json.dumps({"results": [asdict(each) for each in results]}, indent=2))
    if any(each.state == "failed" for each in results):
        raise typer.Exit(1)
