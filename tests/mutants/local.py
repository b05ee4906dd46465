"""Seeded bugs of the local model: a device that tells by its work, or spends what it has not."""

from tests.mutants.mutant import Mutant

_FILE = "service/local/device.py"

MUTANTS = [
    Mutant(
        name="a device that is silent on the disk",
        incident="An exhausted device does not write its account: the time of a report tells that it cannot pay.",
        file=_FILE,
        find="            self._write(_Account(",
        put="            active[0] and self._write(_Account(",
        killed_by="tests/local/test_device.py::test_exhausted_and_blank_devices_write_as_much",
    ),
    Mutant(
        name="an exhausted device that goes on",
        incident="The vector is added whether it is paid for or not.",
        file=_FILE,
        find="noise + steps * active",
        put="noise + steps",
        killed_by="tests/local/test_device.py::test_a_budget_pays_for_so_many_reports_and_then_for_none",
    ),
    Mutant(
        name="an account that forgets",
        incident="The account that is written is that of before: the budget never ends.",
        file=_FILE,
        find="spent_units=int(accounts.spent[0])",
        put="spent_units=account.spent_units",
        killed_by="tests/local/test_device.py::test_another_process_goes_on_with_the_account",
    ),
    Mutant(
        name="a vector beyond the clip",
        incident="A long vector is sent as it is, although it is priced: a clip bounds nothing.",
        file=_FILE,
        find="np.where(whole @ whole <= self._clip_squared_steps, whole, cut)",
        put="whole",
        killed_by="tests/local/test_device.py::test_a_vector_of_huge_numbers_keeps_its_direction",
    ),
    Mutant(
        name="a larger budget for the same file",
        incident="A budget that is raised later is taken: a second promise for what has left.",
        file=_FILE,
        find="if not is_sound or account.budget_units != self._budget_units:",
        put="if not is_sound:",
        killed_by="tests/local/test_device.py::test_another_budget_is_refused",
    ),
]
