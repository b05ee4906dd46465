"""The Postgres adapter of the store port."""
