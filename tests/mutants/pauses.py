"""Seeded bugs of pauses: who is left out, what a burn takes, where the flag travels."""

from tests.mutants.mutant import Mutant

FILTER = "tests/core/test_renyi_filter.py"
RESTORE = "tests/laws/test_restore.py"
REPLICA = "tests/workflows/replication/test_act_changes.py::test_a_pause_counts_in_the_next_query_of_another_replica"
CONTRACT = "tests/contracts/test_store.py"

MUTANTS = [
    Mutant(
        name="a pause is not seen by the filter",
        incident="People who have paused are charged, and are in every answer.",
        file="service/core/renyi_filter.py",
        find="        np.greater(active, self.paused[touched.index], out=active)  # true and not paused\n",
        put="",
        killed_by=f"{FILTER}::test_a_paused_individual_is_left_out[0-resting1-dense]",
    ),
    Mutant(
        name="a pause is a limit to a burn",
        incident="Pause, restore a backup, burn nothing, resume: what the restore has forgotten is had again.",
        file="service/workflows/maintenance/reconcile.py",
        find="charges = np.minimum(left, units)",
        put="charges = np.minimum(np.where(state.memory.accounts.paused[slots], 0, left), units)",
        killed_by="tests/laws/test_pauses.py::test_no_individual_pays_more_than_its_limit_by_pausing",
    ),
    Mutant(
        name="a pause is a limit to a burn, by hand",
        incident="The same, in the one history that shows it.",
        file="service/workflows/maintenance/reconcile.py",
        find="charges = np.minimum(left, units)",
        put="charges = np.minimum(np.where(state.memory.accounts.paused[slots], 0, left), units)",
        killed_by=f"{RESTORE}::test_a_pause_brings_back_no_charge_lost_by_a_restore[True]",
    ),
    Mutant(
        name="a pause elsewhere is not followed",
        incident="A replica goes on charging somebody who has paused at another replica.",
        file="service/workflows/writer/state.py",
        find="            self.set_paused(slot, paused=paused)\n",
        put="            pass\n",
        killed_by=REPLICA,
    ),
    Mutant(
        name="a pause is forgotten at a start",
        incident="After a restart everybody who has paused is charged again.",
        file="service/workflows/shards/shard.py",
        find="        accounts.paused[slots] = stored.paused\n",
        put="",
        killed_by=REPLICA,
    ),
    Mutant(
        name="a pause ends by leaving",
        incident="A curator uploads somebody's record again, and with it ends their pause.",
        file="service/store/postgres/transaction.py",
        find="SET key = %s, tombstone = NULL, limit_units = %s",
        put="SET key = %s, tombstone = NULL, paused = false, limit_units = %s",
        killed_by=f"{CONTRACT}::test_a_pause_lasts_until_it_is_ended[postgres]",
    ),
    Mutant(
        name="accounts of an earlier version are taken for now's",
        incident="A slice that an earlier version left in Redis is read as one that has counters, and fails.",
        file="service/store/redis/sealed.py",
        find='_label("accounts 3",',
        put='_label("accounts 2",',
        killed_by="tests/store/redis/test_sealed.py::test_accounts_of_an_earlier_version_are_as_good_as_none",
    ),
]
