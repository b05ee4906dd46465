"""Queries: the closed language, its public schema, its canonical form and its public cost. Pure."""
