"""The port of leases, by which one process at a time owns a dataset."""

from typing import Protocol

from service.workflows.model.rows import Lease, ReplicaAddress


class Leases(Protocol):
    """Which process works on which dataset. Time is the store's clock alone; every method raises StoreUnavailable.

    A lease decides only which process works. The charges are right with any number of them, by lock and fence.
    """

    def claim(self, dataset_id: int, replica: ReplicaAddress, *, lease_s: float) -> Lease:
        """Take the dataset for `lease_s` if it is free, expired or the replica's own. Returns the lease in force."""

    def renew(self, replica: ReplicaAddress, *, lease_s: float) -> list[Lease]:
        """Prolong every lease that is the replica's. Returns all leases in force, those of other replicas too."""

    def release(self, replica: ReplicaAddress) -> None:
        """End every lease of the replica's."""
