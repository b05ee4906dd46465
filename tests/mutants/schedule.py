"""Seeded bugs of what is decided in time: slots, turns, public costs and memory."""

from tests.mutants.mutant import Mutant

CANCELLING = "tests/api/test_cancelling.py"

MUTANTS = [
    Mutant(
        name="an arrival at a slot's beginning counts",
        incident="Whether a request is in the slot depends on how quickly the server noticed it.",
        file="service/workflows/admission/schedule.py",
        find="(self._arriving[0].arrived_ns // self.rules.slot_ns + 1) * self.rules.slot_ns\n"
        "        return max(self._free_ns, after_arrival_ns)\n",
        put="-(-self._arriving[0].arrived_ns // self.rules.slot_ns) * self.rules.slot_ns\n"
        "        at_ns = max(self._free_ns, after_arrival_ns)\n"
        "        while self._arriving and self._arriving[0].arrived_ns <= at_ns:\n"
        "            request = self._arriving.popleft()\n"
        "            self._turns.put(request.principal, request.cost.time_ns, request)\n"
        "        return at_ns\n",
        killed_by="tests/workflows/admission/test_schedule.py::"
        "test_reservations_are_whole_slots_that_follow_the_arrivals_and_never_overlap",
    ),
    Mutant(
        name="an arrival while responses leave is in their slot",
        incident="The slot of a request tells whether the thread of the slots was late.",
        file="service/workflows/admission/scheduler.py",
        find="request.arrived_ns = self._advance()",
        put="request.arrived_ns = self._advance() - START_NS",
        killed_by="tests/workflows/admission/test_scheduler.py::TestBegin::"
        "test_later_arrivals_are_not_in_a_slot_that_has_begun",
    ),
    Mutant(
        name="a turn ignores the cost",
        incident="An analyst with expensive queries gets as many turns as one with cheap ones, and all the time.",
        file="service/workflows/admission/schedule.py",
        find="self._ends[principal] = tag + cost",
        put="self._ends[principal] = tag + min(cost, 1)",
        killed_by="tests/workflows/admission/test_schedule.py::test_the_order_is_that_of_start_time_fair_queueing",
    ),
    Mutant(
        name="no turns without slots",
        incident="With slots off, one analyst's crowd is answered before anybody else's only query.",
        file="service/workflows/writer/queue.py",
        find="self._turns.put(item.turn, item.cost.time_ns, item)",
        put="self._turns.put(None, item.cost.time_ns, item)",
        killed_by="tests/workflows/test_turns.py::test_many_queries_of_one_analyst_do_not_delay_another_analyst[200]",
    ),
    Mutant(
        name="a late response leaves at once",
        incident="How late it is tells how long the work took, to the microsecond.",
        file="service/api/middleware/release_slots.py",
        find="due_ns = self.slots.late(arrived_ns=arrived_ns, due_ns=due_ns, now_ns=now_ns)",
        put="due_ns = now_ns",
        killed_by="tests/api/middleware/test_release_slots.py::TestReleaseSlots::"
        "test_late_responses_leave_at_two_four_eight_times_their_delay",
    ),
    Mutant(
        name="a late response leaves at the next slot",
        incident="A grid reads off how late a response was, slot by slot.",
        file="service/api/middleware/release_slots.py",
        find="            delay_ns *= 2\n",
        put="            delay_ns += self.length_ns\n",
        killed_by="tests/api/middleware/test_release_slots.py::test_what_is_late_leaves_at_two_four_eight_times_its_delay",
    ),
    Mutant(
        name="memory is not released",
        incident="After some hundred queries everybody is Busy for ever.",
        file="service/api/middleware/request_context.py",
        find="                ticket.release()\n",
        put="                pass\n",
        killed_by="tests/api/test_time_slots.py::test_memory_is_given_back_however_a_request_ends",
    ),
    Mutant(
        name="memory is released with each say",
        incident="A response that is said to have left twice frees what others hold, and the bound is none.",
        file="service/workflows/admission/admission.py",
        find="memory, self.memory = self.memory, None",
        put="memory = self.memory",
        killed_by="tests/workflows/admission/test_admission.py::test_memory_is_given_back_once",
    ),
    Mutant(
        name="one principal may take all memory",
        incident="One analyst's wide queries keep every other analyst out.",
        file="service/workflows/admission/admission.py",
        find="if used_bytes + own_bytes + needed_bytes > self.bytes_max",
        put="if used_bytes > self.bytes_max",
        killed_by="tests/workflows/admission/test_admission.py::test_one_principal_cannot_keep_others_out",
    ),
    Mutant(
        name="an act begins in a reserved slot",
        incident="An individual's pause makes an analyst's answer late, and so shows.",
        file="service/workflows/admission/scheduler.py",
        find="slot_ns >= max(self._schedule.ended_ns, self._act_after_ns)",
        put="slot_ns >= self._act_after_ns",
        killed_by="tests/workflows/admission/test_scheduler.py::TestActs::test_no_act_begins_in_a_reserved_slot",
    ),
    Mutant(
        name="acts follow one another slot by slot",
        incident="Three pauses in a row make the next analyst's answer late, and so show.",
        file="service/workflows/admission/scheduler.py",
        find="slot_ns >= max(self._schedule.ended_ns, self._act_after_ns)",
        put="slot_ns >= self._schedule.ended_ns and slot_ns > self._act_after_ns - ACT_EVERY_NS",
        killed_by="tests/workflows/admission/test_scheduler.py::TestActs::test_in_short_slots_acts_begin_no_more_often",
    ),
    Mutant(
        name="an act before work takes no time",
        incident="A pause half a slot before a query makes its answer late, and so shows.",
        file="service/workflows/admission/scheduler.py",
        find="START_NS + MARGIN_NS + max(commit_ns - slot_ns, 0)",
        put="START_NS + MARGIN_NS",
        killed_by="tests/workflows/admission/test_scheduler.py::"
        "test_in_short_slots_work_has_room_for_the_rest_of_an_act",
    ),
    Mutant(
        name="a batch has the reserve of none",
        incident="The errors of 256 queries add up, and the answer to their batch is late where one query's is not.",
        file="service/workflows/admission/schedule.py",
        find="return work_ns + work_ns * self.reserve_percent // 100",
        put="return work_ns + 0 * self.reserve_percent",
        killed_by="tests/workflows/admission/test_schedule.py::"
        "test_the_reserve_grows_with_the_work_of_all_that_share_it",
    ),
    Mutant(
        name="a response is held for slots of any length",
        incident="In short slots the reads of individuals are late as often as the server is busy, and so show it.",
        file="service/api/middleware/release_slots.py",
        find="max(held_ns, self.length_ns)",
        put="5 * self.length_ns",
        killed_by="tests/api/middleware/test_release_slots.py::test_short_slots_hold_as_long_as_long_ones",
    ),
    Mutant(
        name="a read of an individual begins at once",
        incident="In league with an individual, an analyst feels in its read when the work on a batch ends.",
        file="service/api/auth.py",
        find="caller.role in OWN_ROLES",
        put="caller.role in ()",
        killed_by="tests/api/test_read_slots.py::test_a_read_of_an_individual_or_auditor_begins_in_a_free_slot",
    ),
    Mutant(
        name="an individual's read is held from its arrival",
        incident="Its wait for a free slot makes it late, and so it tells how long queries are worked on.",
        file="service/api/middleware/release_slots.py",
        find='scope["state"].get("begun_ns") or self._free_from_ns(whole_ns)',
        put="self._free_from_ns(whole_ns)",
        killed_by="tests/api/middleware/test_release_slots.py::"
        "TestReleaseSlots::test_a_read_that_began_in_a_free_slot_is_held_from_then_on",
    ),
    Mutant(
        name="a page is held from its arrival",
        incident="A stranger who polls a page counts fewer answers while a query is worked on.",
        file="service/api/middleware/release_slots.py",
        find="or self._free_from_ns(whole_ns)",
        put="or whole_ns",
        killed_by="tests/api/middleware/test_release_slots.py::"
        "TestReleaseSlots::test_a_response_without_a_reservation_is_held_from_the_end_of_the_one_in_which_it_comes",
    ),
    Mutant(
        name="a page leaves while a query is worked on",
        incident="A refusal that is due then leaves up to a slot later, as long as the work lasts.",
        file="service/api/middleware/release_slots.py",
        find="(free_ns := self._free_from_ns(due_ns)) > due_ns",
        put="(free_ns := due_ns) > due_ns",
        killed_by="tests/api/middleware/test_release_slots.py::"
        "TestReleaseSlots::test_a_response_leaves_within_no_reservation",
    ),
    Mutant(
        name="pages that need no key are not held",
        incident="A page's own duration tells while a query is worked on, and when that ends.",
        file="service/api/middleware/release_slots.py",
        find='if principal is not None and principal.role == "curator":',
        put='if principal is None or principal.role == "curator":',
        killed_by="tests/api/middleware/test_release_slots.py::"
        "TestReleaseSlots::test_every_response_but_a_curators_is_held",
    ),
    Mutant(
        name="one individual takes all turns in free slots",
        incident="A thousand reads by one individual keep everybody else's reads and pauses waiting for minutes.",
        file="service/workflows/admission/scheduler.py",
        find="self._acts.put(principal, 1, (principal, act))",
        put="self._acts.put(None, 1, (principal, act))",
        killed_by="tests/workflows/admission/test_scheduler.py::TestActs::test_acts_of_several_principals_take_turns",
    ),
    Mutant(
        name="no slot is left for acts",
        incident="While analysts ask without end, nobody can pause, erase or upload.",
        file="service/workflows/admission/schedule.py",
        find="            self._free_ns += self.rules.rest_ns\n",
        put="            self._free_ns += 0\n",
        killed_by="tests/workflows/admission/test_scheduler.py::TestActs::test_under_load_a_slot_is_left_for_acts",
    ),
    Mutant(
        name="the cost counts the people that are there",
        incident="The delay of a query, and the header that states it, tell how many people the dataset has.",
        file="service/workflows/queries/submit.py",
        find="costs = [self._admission.cost_of(request.plan, record, writer.shards.count) for request in requests]",
        put="import dataclasses\n"
        "            count = writer.submit_look(lambda state: state.shards.memory.accounts.spent.size).result()\n"
        "            there = dataclasses.replace(record, capacity=max(count, 1))\n"
        "            costs = [self._admission.cost_of(request.plan, there) for request in requests]",
        killed_by="tests/api/test_release.py::test_an_answer_states_its_public_cost_and_delay",
    ),
    Mutant(
        name="lists of values of any length share one cost",
        incident="A query with a long list of values is admitted at the cost of a short one, and overruns its slots.",
        file="service/query/cost.py",
        find="            return column, len(codes)\n",
        put="            return column, Among\n",
        killed_by="tests/query/test_cost.py::test_a_longer_list_of_values_is_another_shape",
    ),
    Mutant(
        name="event rows cost as much as individuals",
        incident="A query of events overruns its slots wherever people have many rows.",
        file="service/query/division.py",
        find="rows = table.rows_max(capacity)",
        put="rows = capacity",
        killed_by="tests/query/test_cost.py::test_a_query_of_events_costs_more_where_more_rows_are_declared",
    ),
    Mutant(
        name="a row of a group costs what a row of a count does",
        incident="Counts of events in groups are booked for a fifth of what they take, and are late.",
        file="service/query/cost.py",
        find=" and not plan.group_by",
        put="",
        killed_by="tests/query/test_cost.py::test_a_row_is_priced_by_what_the_engine_does_with_it",
    ),
    Mutant(
        name="a search in a list takes no time",
        incident="A long list of values of a wide column is booked for a hundredth of its time, and made late at will.",
        file="service/query/cost.py",
        find="return sum(len(leaf.codes).bit_length() for",
        put="return sum(0 for",
        killed_by="tests/query/test_cost.py::test_a_list_that_is_searched_costs_as_many_steps_as_it_has_doublings",
    ),
    Mutant(
        name="a cancelled request keeps its slots",
        incident="Asking and leaving, an analyst has the whole time of the server for nothing.",
        file="service/workflows/admission/schedule.py",
        find="            self._arriving.remove(request)\n",
        put="            pass\n",
        killed_by="tests/workflows/admission/test_schedule.py::TestCancel::test_before_its_slots_it_frees_them",
    ),
    Mutant(
        name="what has slots is cancelled while the writer is late",
        incident="The next sequence number tells whether the work before took long.",
        file="service/workflows/writer/submission.py",
        find="if self.ticket is not None and not self.ticket.cancel():",
        put="if self.ticket is not None and not (self.ticket.cancel() or True):",
        killed_by="tests/workflows/writer/test_submission.py::test_slots_that_have_come_are_begun_however_late_the_writer_is",
    ),
    Mutant(
        name="the estimate ignores what is shared",
        incident="Requests are admitted that cannot leave in time, and hear so only when their time is over.",
        file="service/workflows/admission/schedule.py",
        find="        return begins_ns + booked_ns + reservations * each_ns\n",
        put="        return begins_ns + booked_ns + 0 * (reservations + each_ns)\n",
        killed_by="tests/workflows/admission/test_schedule.py::test_a_request_leaves_by_its_estimate_if_nothing_comes_after_it",
    ),
    Mutant(
        name="a commit takes no time",
        incident="Every answer of a full reservation is late.",
        file="service/workflows/admission/schedule.py",
        find="self.booked_ns(work_ns) + commits * self.commit_ns + self.margin_ns",
        put="self.booked_ns(work_ns) + self.margin_ns",
        killed_by="tests/workflows/admission/test_schedule.py::test_a_plain_simulation_gives_the_same_reservations",
    ),
    Mutant(
        name="a listing costs nothing for its length",
        incident="Listings of a thousand make an analyst's own queries late whenever it likes.",
        file="service/api/read_slots.py",
        find="READ_BYTES + ITEM_BYTES * _items(request)",
        put="READ_BYTES + 0 * _items(request)",
        killed_by="tests/api/test_read_slots.py::test_a_larger_listing_costs_more",
    ),
    Mutant(
        name="anyone's key cancels",
        incident="An analyst's cancellation takes another analyst's query out of the schedule.",
        file="service/workflows/writer/submission.py",
        find="any(request.address == address for request in self.requests)",
        put="any(request.key == address[1] for request in self.requests)",
        killed_by=f"{CANCELLING}::test_the_query_of_another_analyst_is_left_alone",
    ),
    Mutant(
        name="a cancelled query stays in the schedule",
        incident="Its analyst is told that nothing was charged, and then it begins.",
        file="service/workflows/admission/scheduler.py",
        find="                    self._schedule.cancel(request, now_ns)\n",
        put="",
        killed_by="tests/workflows/admission/test_scheduler.py::"
        "TestCancel::test_a_request_that_is_withdrawn_never_begins",
    ),
]
