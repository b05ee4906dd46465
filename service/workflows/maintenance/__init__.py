"""Repair and verification of ledgers: burns, amendments, pruning, start checks."""
