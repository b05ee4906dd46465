"""The maintenance: what operators run on a ledger.

One replay shows a ledger to its visitors: verification compares every charge and answer, and what-if decides each
query again under another rule or budget. Reconciliation burns what a lost backup may have spent; amendments take erased
individuals out of entries; calibration measures the speed that prices follow; start checks close a damaged dataset.
"""
