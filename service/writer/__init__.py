"""The writer: the part that works on a dataset's requests, in one process at a time.

A query is admitted by its public cost and waits for its slots. Then the dataset's single writer answers and commits it.
`shards` hold the arrays, `rollback` compares the ledger with the witness, `replication` speaks with other processes,
`admission` bounds rate, memory and time. Charges and answer commit together before the first byte leaves.
"""
