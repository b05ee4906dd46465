"""Calls of a served API: a small dataset, an analyst, a query."""

import ssl

import httpx

DATASET = {
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

QUERY = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 20.0}}
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def client(url: str, key: str) -> httpx.Client:
    """HTTP with a key. To read the certificates of the machine, which nothing here needs, takes 22 ms a client."""
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30, verify=NO_TLS)


def register(url: str, curator_key: str) -> None:
    """Three people."""
    with client(url, curator_key) as curator:
        assert curator.post("/v1/datasets", json=DATASET).status_code == 201
        rows = b"person_id,age\nann,44\nbob,30\neve,71\n"
        uploaded = curator.post(
            "/v1/datasets/survey/tables/people/rows", content=rows, headers={"Content-Type": "text/csv"}
        )
        assert uploaded.json()["individuals"] == 3


def analyst_of(url: str, curator_key: str) -> str:
    """An analyst's key, made over HTTP."""
    with client(url, curator_key) as curator:
        created = curator.post("/v1/principals", json={"role": "analyst", "name": "ana", "dataset": "survey"})
    key: str = created.json()["key"]
    return key


def ask(url: str, analyst_key: str, key: str) -> httpx.Response:
    """One query."""
    with client(url, analyst_key) as analyst:
        return analyst.post("/v1/datasets/survey/queries", json=QUERY, headers={"Idempotency-Key": key})
