"""The maintenance: what operators run on a ledger.

Verification replays a ledger and compares every charge and answer. Reconciliation burns what a lost backup may have
spent; amendments change budgets and limits; what-if replays a ledger under other limits; calibration measures the
speed that prices follow; start checks refuse a damaged dataset.
"""
