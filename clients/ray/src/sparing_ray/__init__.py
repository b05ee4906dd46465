"""Shards of the service on the Ray cluster at `SPARING_RAY_ADDRESS`, with the extra `ray`."""
