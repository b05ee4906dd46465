"""Queries: the closed language, its public schema, its canonical form and its public cost. All of it is pure."""
