"""Reads from a snapshot: ledger, accounts, budget summary, log of acts."""
