"""The report as files for other programs: a table of all answers, and everything as JSON. No API key is in either."""

import csv
import json
from pathlib import Path

from sparing_demo.report import DemoReport

COLUMNS = (
    "asked", "area", "title", "topic", "answer", "half_width_95", "truth", "charged", "left_out", "certified", "reused",
)  # fmt: skip


def write_csv(report: DemoReport, where: Path) -> None:
    """Write all answers in the order asked, one in each row."""
    with where.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for result in report.results:
            rows.writerow([
                result.number, result.area.id, result.area.title, result.topic, result.answer, result.half_width_95,
                result.truth, result.charged, result.left_out, result.certified, result.reused,
            ])  # fmt: skip


def write_json(report: DemoReport, where: Path) -> None:
    """Write all figures of the report."""
    findings = {
        "dataset": report.dataset,
        "guarantee": {"epsilon": str(report.guarantee.epsilon), "delta": str(report.guarantee.delta)},
        "budget_rho": str(report.budget_rho),
        "worst_case_rho": str(report.worst_case_rho),
        "sigma": report.sigma,
        "grid": report.grid,
        "half_width_95": report.half_width_95,
        "answered": report.answered,
        "reused": report.reused,
        "error_bars_that_cover_what_was_counted": report.inside_counted,
        "error_bars_that_cover_the_truth": report.inside,
        "worst_case_answered": report.worst_case_answered,
        "worst_case_half_width_95": report.worst_case_half_width_95,
        "active_share": report.active_share,
        "active_share_last_50": report.active_share_last_50,
        "people": report.budgets.people,
        "people_out_of_budget": report.budgets.out_of_budget,
        "spent_share_mean": report.budgets.spent_share_mean,
        "spent_share_max": report.budgets.spent_share_max,
        "people_by_tenth_of_budget_left": report.budgets.remaining_share,
        "seconds": round(report.seconds, 3),
    }
    where.write_text(json.dumps(findings, indent=2) + "\n", encoding="utf-8")
