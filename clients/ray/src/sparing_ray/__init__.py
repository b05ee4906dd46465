"""Shards of the service on a Ray cluster: what `SPARING_RAY_ADDRESS` asks for, with the extra `ray`."""
