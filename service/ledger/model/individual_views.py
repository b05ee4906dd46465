"""Frozen rows about one individual: its own account and receipts, and the divergence along the run for a curator."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal
from uuid import UUID

from service.ledger.model.ledger_entry import Kind
from service.ledger.model.pieces import Outcome
from service.ledger.model.stated_monitor import MonitorReserve
from service.ledger.model.views import (
    AdvisoryEpsilon,
    AmountUnit,
    Asker,
    DatasetName,
    LedgerSequence,
    QueriesCharged,
    QueriesLeftOut,
    QueryWords,
)
from service.query.schema import doc

PromiseOf = Literal["largest_limit", "dataset_budget"]
NO_GUARANTEE: Final = "This is not a guarantee, and must not leave the curator."


@dataclass(frozen=True, slots=True, kw_only=True)
class MyBudget:
    """Your own account: the promise, which does not change when you lower your limit, what is spent, and a bound on the
    loss so far. Burns are counted neither as charged nor as left out.
    """  # noqa: D205 - one paragraph in the OpenAPI document

    # The promise is of the largest limit ever in force: lowering it changes nothing about answers that have left. Where
    # it is not known, the dataset's budget is an upper bound of it. The epsilon so far bounds the loss of a blanked
    # record at every moment until now, but with probability `delta`.
    dataset: DatasetName
    unit: AmountUnit
    budget_rho: Annotated[str, doc("Your limit for queries in rho, a decimal.")]
    reserve_rho: MonitorReserve
    spent_rho: Annotated[str, doc("The sum of your charges in rho, a decimal.")]
    remaining_rho: Annotated[str, doc("Limit less spent, in rho, a decimal.")]
    share_spent: Annotated[float, doc("The share of your limit that is spent, from 0 to 1.")]
    lowest_limit_rho: Annotated[
        str, doc("The smallest limit that you may lower yours to, in rho, a decimal: what is spent, and `reserve_rho`.")
    ]
    promise_rho: Annotated[str, doc("The limit that the promise is of in rho, a decimal.")]
    promise_epsilon: Annotated[
        float, doc("The epsilon promised to you over everything ever released, against a blank record.")
    ]
    promise_epsilon_replace_one: Annotated[
        float | None, doc("The same against a record that is replaced by any other; null where nothing follows of it.")
    ]
    promise_epsilon_advisory: AdvisoryEpsilon
    promise_of: Annotated[
        PromiseOf, doc("The limit that the promise is of: your own largest one, or the dataset's budget.")
    ]
    epsilon_so_far_time_uniform: Annotated[
        float | None, doc("The epsilon that bounds your loss so far; null where it is not below the promise.")
    ]
    delta: Annotated[str, doc("The delta of every epsilon here, a decimal.")]
    paused: Annotated[bool, doc("Whether you take part in no query until you resume.")]
    left_out_for_good: Annotated[
        bool, doc("Whether you take part in no query any more: the rule is `drop`, and a query has left you out.")
    ]
    queries_charged: QueriesCharged
    queries_left_out: QueriesLeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The cost of one query to one individual."""

    query_id: Annotated[UUID, doc("The id of the answer.")]
    dataset: DatasetName
    sequence: LedgerSequence
    asked: Annotated[
        dict[str, object],
        doc("The query in its canonical form; of a burn the reason why every individual was charged."),
    ]
    words: QueryWords
    at: Annotated[datetime, doc("When the query arrived, to the second, in UTC.")]
    unit: AmountUnit
    charged_rho: Annotated[str | None, doc("The charge in rho, a decimal; null where it is no longer kept.")]
    asked_rho: Annotated[
        str | None,
        doc(
            "The charge of the individual's whole vector in rho, a decimal: more than `charged_rho` where it was"
            " shortened or left out; null where it is no longer kept."
        ),
    ]
    outcome: Annotated[
        Outcome | Literal["no_longer_kept"],
        doc(
            "Whether the query charged the individual, shortened its vector to what was left of the limit and charged"
            " that, counted it at no charge as one of the exhausted, left it out, or did not concern it."
        ),
    ]
    kind: Annotated[Kind, doc("`query`, or `burn`: a charge for answers that a restored database has forgotten.")]
    asker: Annotated[
        Asker | None, doc("The organisation that asked and its purpose; null where that is not known.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDivergence:
    """The divergence of one record along the run: how well the answers that came tell the dataset with it from the one
    without it, chosen by the queries that came. A sealed diagnostic: it depends on the record and on the answers.
    """  # noqa: D205 - one paragraph in the OpenAPI document

    notice: Annotated[str, doc("The warning that goes with these numbers.")]
    individual: Annotated[str, doc("The key of the individual.")]
    sequence: LedgerSequence
    unit: AmountUnit
    spent_rho: Annotated[str, doc("The most that the charges along the run add up to, in rho, a decimal.")]
    epsilon: Annotated[float, doc("The epsilon of that total at `delta`, as if the queries had been fixed beforehand.")]
    delta: Annotated[str, doc("The delta of the epsilon, a decimal.")]
