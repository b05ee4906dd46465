"""Verification of a whole dataset: one module for each part that is derived again."""
