"""Statements for humans, from public numbers and the ledger's integer units. All is pure and imports only the core."""
