"""Verification of a whole ledger, one module for each thing that is derived again."""
