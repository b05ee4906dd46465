"""The reads: what people are shown of a dataset, from a snapshot.

They are ledger pages, accounts, budget summaries, forecasts, continual counts and the log of acts. A read never waits
for the writer, charges nobody and changes nothing.
"""
