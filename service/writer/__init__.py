"""The writer: one dataset that is answered for by one process at a time.

A query is admitted by its public cost, waits for its slots, and is answered and committed by the dataset's single
writer. `shards` hold the arrays, `rollback` compares the ledger with the witness, `replication` speaks with other
processes, `admission` bounds rate, memory and time. Charges and answer commit together before the first byte leaves.
"""
