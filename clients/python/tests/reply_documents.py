"""The documents of a service's replies, with no more than each must have."""

from typing import Any

Json = dict[str, Any]

AT = "2026-11-21T09:00:00Z"
RHO: Json = {"budget_rho": "1", "spent_rho": "0", "remaining_rho": "1"}
NOISY: Json = {"sigma": 1, "grid": 1, "dimension": 1, "worst_case_rho": "0.1"}
ANSWER: Json = (
    {"id": "q", "sequence": 1, "values": [1.5], "labels": [{"select": "count"}], "half_width_95": 2}
    | {"axes": [{"select": [{"select": "count", "offset": 0, "size": 1}]}]}
    | {"coverage_certified": True, "reused": False, "epoch": 1, "released_at": AT}
    | {"table": "t"}
    | NOISY
)
PREVIEW: Json = {"half_width_95": 2} | NOISY
RELEASE: Json = {"id": "q", "dataset": "d", "sequence": 1, "query": {}, "released_at": AT, "epoch": 1} | NOISY
TABLES: Json = {"t": {"kind": "individuals", "key": "id", "columns": {"age": {}}}}
DATASET: Json = {"name": "d", "guarantee": {}, "budget_rho": "1", "budget_units": 1, "mu": 1} | {
    "capacity": 9,
    "rule": "skip",
    "tables": TABLES,
}
COUNTED: Json = {"paused": False, "queries_charged": 0, "queries_left_out": 0}
ACCOUNT: Json = {"key": "a", "spent_units": 0, "budget_units": 1} | RHO | COUNTED
SUMMARY: Json = {"sequence": 1, "individuals": 1, "exhausted": 0, "remaining_share_histogram": [], "quantiles": {}}
ENTRY: Json = (
    {"sequence": 1, "query_id": "q", "analyst": "Ann", "query": {}, "asked_at": AT, "epoch": 1, "is_checkable": True}
    | dict.fromkeys(["format", "kind", "mechanism", "grid_log2", "analyst_id", "query_sha256", "query_hash"], 1)
    | dict.fromkeys(["worst_case_units", "worst_case_total_units", "values_sha256"], "1")
    | dict.fromkeys(["previous_hash", "hash", "private_digest"], "00")
    | NOISY
)
ACT: Json = {"number": 1, "act": "epoch", "sequence": 1, "at": AT}
PRINCIPAL: Json = {"id": "p", "role": "analyst", "name": "Ann", "created_at": AT}
KEY: Json = {"id": "p", "role": "analyst", "name": "Ann", "key": "k"}
MINE: Json = (
    {"dataset": "d", "share_spent": 0, "promise_rho": "1", "promise_epsilon": 1, "promise_epsilon_replace_one": 2}
    | {"promise_of": "largest_limit", "epsilon_so_far_time_uniform": None, "delta": "1e-6"}
    | {"lowest_limit_rho": "0.1"}
    | RHO
    | COUNTED
)
DIVERGENCE: Json = {"notice": "No.", "individual": "a", "sequence": 1, "unit": "rho", "spent_rho": "0.1"} | {
    "epsilon": 0.4,
    "delta": "1e-6",
}
RECEIPT: Json = {"query_id": "q", "asked": {}, "at": AT, "charged_rho": "0.1", "asked_rho": "0.1"} | {
    "outcome": "charged"
}
HISTORY: Json = {
    "quantiles": [0.5],
    "points": [
        {"seq": 1, "at": AT, "cannot_afford": None, "quantiles": [0.9]}
        | dict.fromkeys(["individuals", "exhausted", "paused"], 1)
    ],
}
FORECAST: Json = (
    {"sequence": 1, "words": "", "touched": 2, "active": 1}
    | NOISY
    | {"curve": [{"queries": 0, "share": 0.5}], "dropped_after": [{"share": 0.5, "queries": None}]}
)
ALARM: Json = {"share": 0.1, "rang_at_sequence": None}
ANALYST: Json = {"id": "p", "name": "Ann", "worst_case_spent_rho": "0.1"}
REPORT: Json = {"rows": 1, "individuals": 1}
REFUSED: Json = {"type": "urn:sparing:problem:invalid-request", "title": "No.", "status": 422, "detail": "No."}
TICKS: Json = {"rho": "0.1", "ticks": 3, "share": 0.5, "sigma": 1, "asked": 1, "ended": False, "values": [0]}
