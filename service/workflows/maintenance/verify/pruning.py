"""The stored totals of a pruning compared with the journal, whose last `prune` act binds them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from service.workflows.maintenance.verify.totals import totals_digest
from service.workflows.model.journal import JournalAct
from service.workflows.model.rows import Head, StoredPage


@dataclass(slots=True, kw_only=True)
class PrunedLedger:
    """The pruned part of a ledger: up to `seq`, whose entry has the hash `hash`; 0 if nothing is pruned.

    `pages` are every individual's totals there, which include `ahead_units` of later entries.
    """

    seq: int = 0
    hash: str = ""
    ahead_units: int = 0
    pages: tuple[StoredPage, ...] = ()
    findings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, head: Head, acts: Sequence[JournalAct], pages: Iterable[StoredPage]) -> Self:
        """Compare the head, the journal and the stored totals."""
        made = cls(pages=tuple(pages))
        for act in acts:
            if act.act == "prune":
                made._take(act)
        if head.pruned_seq != made.seq:
            made.findings.append(f"heads: says pruned_seq {head.pruned_seq}, the journal gives {made.seq}")
        return made

    def _take(self, act: JournalAct) -> None:
        """Read a `prune` act; the last one counts."""
        self.findings.clear()
        try:
            self.seq, self.hash = int(act.detail["seq"]), str(act.detail["hash"])
            self.ahead_units = int(act.detail["ahead_units"])
            digest = totals_digest(bytes.fromhex(act.detail["salt"]), self.pages).hex()
            if digest != act.detail["totals"]:
                self.findings.append("pruned_totals: its rows are not those of the journal")
        except (KeyError, ValueError, TypeError) as error:
            self.findings.append(f"journal row {act.number}: its detail makes no sense ({type(error).__name__})")
