"""Adapters for the ports: Postgres, Redis, their in-memory twins, the operating system's entropy."""
