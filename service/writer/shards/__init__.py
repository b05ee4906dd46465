"""The shards of a dataset: the arrays of its individuals, in one shard or divided by page over several."""
