"""Points of the budget summary and alarms on Postgres."""

from collections.abc import Sequence
from datetime import UTC

from psycopg.types.json import Jsonb

from service.store.postgres.pool import SessionPool
from service.workflows.ports.summaries import BudgetAlarm, SummaryPoint


class PostgresSummaries:
    """The port's SummaryTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add_point(self, dataset_id: int, point: SummaryPoint) -> None:
        detail = {
            "individuals": point.individuals,
            "exhausted": point.exhausted,
            "paused": point.paused,
            "cannot_afford": point.cannot_afford,
            "quantiles": list(point.quantiles),
        }
        self._pool.commit(
            "INSERT INTO summary_points (dataset_id, seq, at, detail) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [dataset_id, point.seq, point.at, Jsonb(detail)],
        )

    def points(self, dataset_id: int) -> list[SummaryPoint]:
        rows = self._pool.rows(
            "SELECT seq, at, detail FROM summary_points WHERE dataset_id = %s ORDER BY seq", [dataset_id]
        )
        return [
            SummaryPoint(seq=seq, at=at.astimezone(UTC), **(detail | {"quantiles": tuple(detail["quantiles"])}))
            for seq, at, detail in rows
        ]

    def drop_points(self, dataset_id: int, seqs: Sequence[int]) -> None:
        self._pool.commit(
            "DELETE FROM summary_points WHERE dataset_id = %s AND seq = ANY(%s)", [dataset_id, list(seqs)]
        )

    def alarm(self, dataset_id: int) -> BudgetAlarm | None:
        rows = self._pool.rows("SELECT share, rang_seq FROM alarms WHERE dataset_id = %s", [dataset_id])
        return BudgetAlarm(share=rows[0][0], rang_seq=rows[0][1]) if rows else None

    def set_alarm(self, dataset_id: int, alarm: BudgetAlarm | None) -> None:
        if alarm is None:
            self._pool.commit("DELETE FROM alarms WHERE dataset_id = %s", [dataset_id])
            return
        self._pool.commit(
            "INSERT INTO alarms (dataset_id, share, rang_seq) VALUES (%s, %s, %s)"
            " ON CONFLICT (dataset_id) DO UPDATE SET share = excluded.share, rang_seq = excluded.rang_seq",
            [dataset_id, alarm.share, alarm.rang_seq],
        )
