"""Backups: a folder with a dump of the database and its description, made beside a running service, and put back.

A backup never holds the pepper or the witness. Database and pepper together show every price. A witness that is put
back with its database would not notice that anything is missing.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from importlib.metadata import version as distribution_version
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

from service.embedded.home import sync_directory
from service.ledger.model.api_keys import Pepper
from service.ledger.ports.store import Store
from service.ledger.ports.witness import Witness, WitnessUnavailable
from service.run.adapters import now, store_of
from service.run.home import known_pepper, servers_of
from service.settings.settings import Settings, SettingsError
from service.store.postgres.dump import Dumped, dump, restore, set_aside
from service.store.postgres.registrations import check_known, migrate
from service.store.witness.file import FileWitness
from service.writer.rollback.guard import witness_name
from service.writer.rollback.losses import losses

FORMAT: Final = 1
DUMP: Final = "database.dump"
DESCRIPTION: Final = "backup.json"
_PROVEN: Final = (
    "the backup is as it was written, or was changed on purpose: its checksum finds accidents, and no forgery by an"
    " account that may write to its folder; `sparing ledger verify` looks at its contents"
)

Tell = Callable[[str], None]


class BackupUnusable(Exception):
    """The folder is no backup, was changed, or was made under another pepper; nothing was done."""


def back_up(settings: Settings, target: Path, tell: Tell) -> None:
    """Make the folder `target`, which must not be there. Raises BackupUnusable, DatabaseUnusable, OSError."""
    if target.exists():
        raise BackupUnusable(f"{target} is there already: nothing was done")
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with servers_of(settings) as servers:
            tell("dumping the database in one snapshot; a running service goes on")
            dumped = dump(servers.database_url, folder / DUMP)
        _describe(folder, dumped)
        for path in (folder / DUMP, folder / DESCRIPTION):
            path.chmod(0o600)
            with path.open("rb") as file:
                os.fsync(file.fileno())
        sync_directory(folder)
        folder.rename(target)
        sync_directory(target.parent)
    except BaseException:
        rmtree(folder)
        raise
    for head in dumped.heads:
        tell(f"{head.dataset}: up to sequence {head.sequence}, with {head.acts} acts")
    size = (target / DUMP).stat().st_size
    tell(f"{target}: {size:,} bytes of {len(dumped.heads)} datasets, schema {dumped.schema}")
    tell("not in it, and kept elsewhere: the pepper, without which it cannot be read, and the witness")


def _describe(folder: Path, dumped: Dumped) -> None:
    stated: dict[str, Any] = {
        "format": FORMAT,
        "made_at": now().isoformat(timespec="seconds"),
        "version": distribution_version("sparing"),
        "postgres": dumped.postgres,
        "schema": dumped.schema,
        "sha256": _sha256(folder / DUMP),
        "pepper": None if dumped.pepper is None else [part.hex() for part in dumped.pepper],
        "datasets": [asdict(head) for head in dumped.heads],
    }
    (folder / DESCRIPTION).write_text(json.dumps(stated, indent=2) + "\n")


def put_back(settings: Settings, source: Path, tell: Tell, *, aside: bool) -> None:
    """Fill an empty database with a backup, bring it to this version's schema, and tell what was witnessed since.

    With `aside` a database that is not empty is kept under another name. Raises BackupUnusable, NotRestored,
    UnknownSchema, DatabaseUnusable, SettingsError.
    """
    stated = _checked(source)
    check_known(stated["schema"])
    pepper = _fitting_pepper(settings, stated)
    with servers_of(settings) as servers:
        if aside:
            other = set_aside(servers.database_url, now=now())
            if other is not None:
                tell(f"the database that was there is kept as {other}; drop it when it is of no use any more")
        tell(_PROVEN)
        tell(f"restoring the backup of {stated['made_at']}: {(source / DUMP).stat().st_size:,} bytes")
        restore(servers.database_url, source / DUMP)
        migrate(servers.database_url)
        with closing(store_of(settings, servers)) as store:
            store.check_pepper(pepper.database_proof)
            for head in stated["datasets"]:
                tell(f"{head['dataset']}: up to sequence {head['sequence']}, with {head['acts']} acts")
            for line in told_losses(store, FileWitness(settings.witness)):
                tell(line)


def told_losses(store: Store, witness: Witness) -> Iterator[str]:
    """Lines for the operator: what was witnessed and is missing, and what to do about it."""
    try:
        found = list(losses(store, witness))
        unwitnessed = [
            record.name
            for record in store.datasets()
            if not witness.history(witness_name(record)) and store.head(record.id).seq > 0
        ]
    except WitnessUnavailable:
        yield "the witness cannot be read: nothing can say whether anything is missing"
        return
    for loss in found:
        yield str(loss)
    for name in unwitnessed:
        yield f"{name}: no witness is left that could say whether anything is missing"
    if unwitnessed or any(not loss.is_whole for loss in found):
        yield "closed until `sparing ledger reconcile --dataset NAME` has burned what that may have cost"
    elif not found:
        yield "nothing that was witnessed is missing"


def _checked(source: Path) -> dict[str, Any]:
    try:
        stated: dict[str, Any] = json.loads((source / DESCRIPTION).read_text())
        is_known = stated["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackupUnusable(f"{source} is not a backup of this service") from error
    if not is_known:
        raise BackupUnusable(f"{source} has a format that this version does not know")
    if _sha256(source / DUMP) != stated["sha256"]:
        raise BackupUnusable(f"{source / DUMP} is not the file that was written: it is damaged or was changed")
    return stated


def _fitting_pepper(settings: Settings, stated: dict[str, Any]) -> Pepper:
    secret = known_pepper(settings)
    if secret is None:
        raise SettingsError(f"put the pepper first: SPARING_PEPPER, or the file pepper in {settings.home}")
    pepper = Pepper(secret)
    if stated["pepper"] is not None:
        salt, proof = map(bytes.fromhex, stated["pepper"])
        if pepper.database_proof(salt) != proof:
            raise BackupUnusable("the pepper (SPARING_PEPPER, or the file in the home) is not that of this backup")
    return pepper


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
