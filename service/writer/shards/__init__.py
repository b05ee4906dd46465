"""The shards of a dataset: the arrays of its individuals, undivided or by page over several."""
