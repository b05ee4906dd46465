"""Calls of a served API: a small dataset, an analyst, a query."""

import ssl
from typing import Any

import httpx

from tests.waiting import PATIENCE_S

DATASET: dict[str, Any] = {
    "name": "survey",
    "guarantee": {"epsilon": 1, "delta": 1e-6},
    "capacity": 1000,
    "tables": {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}},
        }
    },
}
ROWS = b"person_id,age\nann,44\nbob,30\neve,71\n"
CSV = {"Content-Type": "text/csv"}

QUERY: dict[str, Any] = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 20.0}, "reuse": False}
"""Each key is charged anew."""
"""The patience of a client: above what a slow machine takes for any answer."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def client(url: str, key: str) -> httpx.Client:
    """HTTP with a key. To read the certificates of the machine, which nothing here needs, takes 22 ms a client."""
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S, verify=NO_TLS)


def get(url: str) -> httpx.Response:
    """A request without a key."""
    return httpx.get(url, timeout=PATIENCE_S, verify=NO_TLS, trust_env=False)


def register(url: str, curator_key: str, name: str = "survey") -> None:
    """Three people."""
    with client(url, curator_key) as curator:
        assert curator.post("/v1/datasets", json=DATASET | {"name": name}).status_code == 201
        uploaded = curator.post(f"/v1/datasets/{name}/tables/people/rows", content=ROWS, headers=CSV)
        assert uploaded.json()["individuals"] == 3


def analyst_of(url: str, curator_key: str, dataset: str = "survey") -> str:
    """An analyst's key, made over HTTP."""
    with client(url, curator_key) as curator:
        created = curator.post("/v1/principals", json={"role": "analyst", "name": "ana", "dataset": dataset})
    key: str = created.json()["key"]
    return key


def ask(url: str, analyst_key: str, key: str, dataset: str = "survey") -> httpx.Response:
    """One query."""
    with client(url, analyst_key) as analyst:
        return asked(analyst, key, dataset)


def asked(analyst: httpx.Client, key: str, dataset: str = "survey", query: dict[str, Any] = QUERY) -> httpx.Response:
    """One query of a client."""
    return analyst.post(f"/v1/datasets/{dataset}/queries", json=query, headers={"Idempotency-Key": key})


def spent_units(url: str, curator_key: str, dataset: str = "survey") -> dict[str, int]:
    """The spent total of each individual."""
    with client(url, curator_key) as curator:
        rows = curator.get(f"/v1/datasets/{dataset}/budgets").raise_for_status().json()["items"]
    return {row["key"]: row["spent_units"] for row in rows}
