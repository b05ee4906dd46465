"""Shards of a dataset in processes of their own."""

from service.store.shards.process import ProcessShards

__all__ = ["ProcessShards"]
