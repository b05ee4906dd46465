"""The dataset in memory: reading rows, holding them in fixed slots, and making each individual's integer vector."""
