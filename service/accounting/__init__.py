"""Statements for humans, from public numbers and the ledger's integer units. Pure; imports only the core."""
