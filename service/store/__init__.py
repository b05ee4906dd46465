"""Adapters for the ports: Postgres, Redis, the witness, the operating system's entropy."""
