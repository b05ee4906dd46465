"""Twins of the tables of principals, sign-ins and summaries, in one process's memory."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from service.testing.tables import Kept
from service.workflows.model.rows import PrincipalRecord
from service.workflows.ports.sign_ins import SignIn
from service.workflows.ports.summaries import BudgetAlarm, SummaryPoint


class MemoryPrincipals:
    """The port's PrincipalTable, on the records that a store keeps."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def add(self, records: Sequence[PrincipalRecord]) -> None:
        self._kept.principal_records.update((record.id, record) for record in records)

    def find(self, principal_id: UUID) -> PrincipalRecord | None:
        return self._kept.principal_records.get(principal_id)

    def some(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        return [record for record in self._kept.principal_records.values() if record.id in set(principal_ids)]

    def listed(self, *, after: UUID | None, limit: int) -> list[PrincipalRecord]:
        rows = sorted(self._kept.principal_records.values(), key=lambda record: record.id)
        return [record for record in rows if after is None or record.id > after][:limit]

    def analysts_of(self, dataset: str) -> list[PrincipalRecord]:
        records = self._kept.principal_records.values()
        found = [record for record in records if record.role == "analyst" and record.dataset in {None, dataset}]
        return sorted(found, key=lambda record: (record.name, record.id))

    def change(self, record: PrincipalRecord) -> bool:
        before = self.find(record.id)
        if before is None or before.revoked_at is not None:
            return False
        fixed = {name: getattr(before, name) for name in ("role", "dataset", "individual", "created_at", "revoked_at")}
        self._kept.principal_records[record.id] = replace(record, **fixed)
        return True

    def revoke(self, principal_id: UUID, at: datetime) -> bool:
        record = self.find(principal_id)
        if record is None or record.revoked_at is not None:
            return False
        self._kept.principal_records[principal_id] = replace(record, revoked_at=at)
        return True


class MemorySignIns:
    """The port's SignInTable."""

    def __init__(self) -> None:
        self.kept: dict[bytes, SignIn] = {}

    def add(self, sign_in: SignIn, *, now: datetime) -> None:
        self.kept = {each.token_hash: each for each in self.kept.values() if each.expires_at > now}
        self.kept[sign_in.token_hash] = sign_in

    def find(self, token_hash: bytes) -> SignIn | None:
        return self.kept.get(token_hash)

    def extend(self, token_hash: bytes, expires_at: datetime) -> None:
        if token_hash in self.kept:
            self.kept[token_hash] = replace(self.kept[token_hash], expires_at=expires_at)

    def end(self, token_hash: bytes) -> None:
        self.kept.pop(token_hash, None)


class MemorySummaries:
    """The port's SummaryTable."""

    def __init__(self) -> None:
        self._points: dict[int, dict[int, SummaryPoint]] = {}
        self._alarms: dict[int, BudgetAlarm] = {}

    def add_point(self, dataset_id: int, point: SummaryPoint) -> None:
        self._points.setdefault(dataset_id, {}).setdefault(point.seq, point)

    def points(self, dataset_id: int) -> list[SummaryPoint]:
        return sorted(self._points.get(dataset_id, {}).values(), key=lambda point: point.seq)

    def forget(self, dataset_id: int) -> None:
        """Drop everything of a dataset that is deleted."""
        self._points.pop(dataset_id, None)
        self._alarms.pop(dataset_id, None)

    def drop_points(self, dataset_id: int, seqs: Sequence[int]) -> None:
        for seq in seqs:
            self._points.get(dataset_id, {}).pop(seq, None)

    def alarm(self, dataset_id: int) -> BudgetAlarm | None:
        return self._alarms.get(dataset_id)

    def set_alarm(self, dataset_id: int, alarm: BudgetAlarm | None) -> None:
        self._alarms.pop(dataset_id, None)
        if alarm is not None:
            self._alarms[dataset_id] = alarm
