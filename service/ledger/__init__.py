"""The ledger: what is stored, what is hashed, and what is asked of a store.

`model` has frozen values: entries, accounts, acts, rows and views, with the bytes that are kept and hashed of them.
`ports` has the protocols that an adapter implements, with the errors that it may raise. Nothing here reads a database,
decides about a query or knows a dataset's arrays.
"""
