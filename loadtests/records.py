"""The records of long runs in tests/records: one line of JSON for each run, also for one that failed."""

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parents[1] / "tests" / "records"


def keep_record(name: str, figures: Mapping[str, object], *, checkout: Path | None = None) -> None:
    """Append figures to tests/records/NAME.jsonl, with the instant and the commit of the tree that was tried."""
    tree = RECORDS.parent if checkout is None else checkout
    record = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git(tree, "rev-parse", "HEAD"),
        "is_clean": not _git(tree, "status", "--porcelain", "--untracked-files=no", "--", ":/", ":!/tests/records"),
        **figures,
    }
    RECORDS.mkdir(exist_ok=True)
    with (RECORDS / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")


def kept_records(name: str) -> list[dict[str, Any]]:
    """The lines of tests/records/NAME.jsonl; none without the file."""
    file = RECORDS / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _git(tree: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=tree)  # noqa: S607
    return done.stdout.strip()
