"""Statements for humans, made from public numbers and the ledger's integer units. All of it is pure."""
