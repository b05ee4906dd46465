"""Losses: what a witness has seen of datasets and their database lacks, as after a restore of an older backup.

A witness knows positions and no contents, so that a loss is a number of ledger entries and acts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from service.ledger.model.errors import DatasetMissing
from service.ledger.model.rows import DatasetRecord, WitnessRecord
from service.ledger.ports.store import Store
from service.ledger.ports.witness import Witness
from service.writer.rollback.guard import on_chain, unaccounted, witness_name

_INSTANCE: Final = re.compile(r"(.+)-[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One dataset's loss: the farthest record that is missing (`seen`), and the last before it that is not (`shared`).

    `shared` is None if there is no such record. `is_whole` is true if the database lacks the dataset itself.
    """

    dataset: str
    seen: WitnessRecord
    shared: WitnessRecord | None
    is_whole: bool = False

    def __str__(self) -> str:
        """One line about the loss, for the operator."""
        since = self.shared
        first = (0, 0, 0) if since is None else (since.seq, since.acts, since.slots)
        entries = _range("ledger entry", "ledger entries", first[0], self.seen.seq)
        acts = _range("act", "acts", first[1], self.seen.acts)
        joined = self.seen.slots - first[2]
        people = [f"up to {joined} individuals that had joined"] if joined > 0 else []
        what = ", ".join([*entries, *acts, *people]) or f"all that came under fence {self.seen.fence}"
        whole = "the database does not have this dataset; " if self.is_whole else ""
        return f"{self.dataset}: {whole}witnessed and missing: {what}"


def losses(store: Store, witness: Witness) -> Iterator[Loss]:
    """The loss of each dataset that has one. A witness that is itself lost shows no loss.

    Raises WitnessUnavailable, StoreUnavailable.
    """
    records = store.datasets()
    for record in records:
        loss = _loss_of(store, record, witness.history(witness_name(record)))
        if loss is not None:
            yield loss
    yield from whole_losses(store, witness)


def whole_losses(store: Store, witness: Witness) -> Iterator[Loss]:
    """The losses of datasets that a witness has seen and the database lacks.

    Raises WitnessUnavailable, StoreUnavailable.
    """
    known = {witness_name(record) for record in store.datasets()}
    for instance in witness.names():
        if instance in known:
            continue
        name, history = _name_of(instance), witness.history(instance)
        # The ledger of a deleted dataset was empty; what else is witnessed of it is not missing.
        if history and (history[-1].seq > 0 or store.deletions(name) == 0):
            yield Loss(dataset=name, seen=history[-1], shared=None, is_whole=True)


def refuse_missing(witness: Witness, record: DatasetRecord) -> None:
    """Raise DatasetMissing if the witness knows of answers of a dataset of this name that the database lacks.

    Raise it too if anything was witnessed of this very registration. Raises WitnessUnavailable.
    """
    mine = witness_name(record)
    others = [each for each in witness.names() if _name_of(each) == record.name and each != mine]
    if witness.history(mine) or any(seen.seq > 0 for each in others for seen in witness.history(each)[-1:]):
        raise DatasetMissing


def _loss_of(store: Store, record: DatasetRecord, history: list[WitnessRecord]) -> Loss | None:
    with store.transaction(record.id, lock=False) as transaction:
        lost = unaccounted(record, transaction, history)
        if not lost:
            return None
        before = [each for each in on_chain(record, transaction, history) if each.position < lost[0].position]
    return Loss(dataset=record.name, seen=lost[-1], shared=before[-1] if before else None)


def _name_of(instance: str) -> str:
    """A dataset's own name, from the name under which the witness knows it."""
    match = _INSTANCE.fullmatch(instance)
    return instance if match is None else match[1]


def _range(one: str, many: str, since: int, last: int) -> list[str]:
    if last <= since:
        return []
    return [f"{one} {last}" if last == since + 1 else f"{many} {since + 1} to {last}"]
