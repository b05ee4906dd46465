"""The dataset in memory: reading rows, holding them in fixed slots, and giving each individual's integer vector."""
