"""Sparing's server: it answers linear queries about individuals and spends each one's privacy sparingly."""
