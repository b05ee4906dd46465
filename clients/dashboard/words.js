// Every sentence that the pages say more than once.

import { count, number, people, percent, portion, rho, small, times } from "./format.js";

/** @typedef {{ epsilon: string | null, delta: string | null, rho?: string, kind?: string }} Promised each person's */

/** @returns {Promised} of a dataset */
export const promisedBy = (dataset) => ({
  ...dataset.guarantee,
  rho: rho(dataset.budget_rho),
  kind: dataset.accounting.kind,
});

/** The four sentences that explain a budget, the same on every page. */
export function fourSentences(/** @type {Promised} */ promised) {
  return [
    ...(promised.epsilon === null ? boundOfRho(promised) : boundOfEpsilon(promised)),
    "Each query that uses a person's data spends some of that person's limit; when too little is left, the person is" +
      " left out, and no analyst is told.",
    "What is spent never comes back; pausing keeps the rest.",
  ];
}

const boundOfEpsilon = (/** @type {Promised} */ { epsilon, delta }) => [
  `A limit of ε = ${epsilon} means: all answers together, now and later, change the odds of any guess about a person` +
    ` by at most a factor of about ${number(Math.exp(Number(epsilon)))}, compared with that person's data being blank.`,
  ...(Number(delta) ? [`δ = ${small(delta)} is the chance that this could fail.`] : []),
];

const boundOfRho = (/** @type {Promised} */ promised) => [
  `A limit of ρ = ${promised.rho} bounds the privacy loss of all answers together, in` +
    ` ${promised.kind === "rdp" ? "Rényi" : "zero-concentrated"} differential privacy, compared with a person's data` +
    " being blank.",
  "The bound holds at every δ.",
];

export const UNITS = [
  [
    "ρ (rho)",
    "The unit in which privacy is spent. A count with noise σ charges each counted person 1 / (2 σ²); charges add up.",
  ],
  ["ε (epsilon)", "The bound on how far the odds of a guess can move: by a factor of at most e to the power ε."],
  [
    "σ (sigma)",
    "The standard deviation of the noise on each number. Two thirds of all answers are within one σ of what was" +
      " counted.",
  ],
  [
    "active",
    "A person is active for a query if the limit has room for its charge, and the person has not paused. Others are" +
      " left out.",
  ],
];

/** Whether a dataset is under pure differential privacy, where charges are in ε. */
export const isPure = (dataset) => dataset.unit === "epsilon";

/** The letter of what charges are in. */
export const unitLetter = (dataset) => (isPure(dataset) ? "ε" : "ρ");

/** The same with a space; none of an unknown dataset. */
export const unitSign = (dataset) => (dataset ? `${unitLetter(dataset)}\u00a0` : "");

/** What a query may cost anyone at worst, of a preview or an answer. */
export function worstCaseWords({ worst_case_share: share, worst_case_rho: cost }, dataset) {
  const charge = `${unitSign(dataset)}${rho(cost)}`;
  const told = `(${charge}).`;
  if (share === null || share === undefined) return `Worst case ${charge}.`;
  if (share <= 1) return `Worst case ${percent(share)} of each person's budget ${told}`;
  return `Worst case more than the whole budget of each person: ${portion(share)} ${told}`;
}

/** Who is counted by a query for those that are active, and who pays for it. */
export const activeWords = (/** @type {number} */ share) =>
  `Counted and charged: people with at least ${number(100 * share)} % of the budget left, who all can pay, and no one` +
  " else.";

/** The title of the histogram of budgets. */
export function budgetsTitle(summary) {
  const middle = summary.quantiles["0.5"];
  if (!summary.individuals) return "No one is in the dataset yet.";
  const half = `Half of the people have ${shareLeft(middle)} left`;
  const typical = summary.typical_query;
  if (!typical) return `${half}.`;
  return typical.cannot_afford
    ? `${half}; ${count(typical.cannot_afford)} cannot afford another typical query.`
    : `${half}; everyone can afford another typical query.`;
}

/** What at least half of the people have left, in words that are right at both ends. */
export const shareLeft = (/** @type {number} */ middle) =>
  middle >= 1 ? "their whole limit" : middle <= 0 ? "nothing" : `at least ${percent(middle)}`;

export const askingWords = (/** @type {number} */ asking) =>
  asking === 1 ? "One person asks to be erased." : `${count(asking)} people ask to be erased.`;

/**
 * After how many queries which shares are gone: shares that go at once are told together.
 * @returns {{ queries: number, shares: string }[]}
 */
export function dropOuts(forecast) {
  /** @type {Map<number, string[]>} */
  const told = new Map();
  for (const { queries, share } of forecast.dropped_after) {
    if (queries) told.set(queries, [...(told.get(queries) ?? []), percent(share)]);
  }
  return [...told].map(([queries, shares]) => ({ queries, shares: listed.format(shares) }));
}

const listed = new Intl.ListFormat("en-GB"); // a, b and c

export function forecastTitle(forecast) {
  if (!forecast.touched) return "Such a query touches no one.";
  const at = dropOuts(forecast).map((each) => `${each.shares} after ${number(each.queries)}`);
  const now = forecast.touched - forecast.active;
  const lost = now
    ? `${people(now)} of ${count(forecast.touched)} would be left out at once`
    : `All ${people(forecast.touched)} that it touches can pay for one`;
  if (!forecast.active) return `${lost}.`;
  return at.length
    ? `${lost}; drop-outs: ${at.join("; ")} such queries.`
    : `${lost}; none of the marks is reached within 1,000.`;
}

export function activeTitle(rows) {
  const touched = rows.filter((row) => row.charged + row.left_out > 0);
  if (!touched.length) return "No query has touched anyone yet.";
  const left = touched.filter((row) => row.left_out > 0).length;
  return left
    ? `${count(left)} of the last ${times(rows.length, "query", "queries")} left people out.`
    : `The last ${times(rows.length, "query", "queries")} left no one out.`;
}

export function receiptsLead(account) {
  const parts = [`${times(account.queries_charged, "query", "queries")} used your data`];
  if (account.queries_left_out)
    parts.push(`${count(account.queries_left_out)} left you out because you had paused or your limit was near`);
  return `${parts.join(", ")}. All others had nothing to do with you.`;
}

/** @type {Record<string, string>} */
export const OUTCOME = {
  charged: "used your data",
  shortened: "used a part of your data",
  counted: "counted you among the exhausted, paid in advance",
  left_out: "left you out",
  untouched: "did not concern you",
  no_longer_kept: "no longer kept",
};

/** What a limit is worth while all noise is Gaussian; nothing where the promise says so already. */
export function advisoryWords({ promise_epsilon_advisory: epsilon }) {
  if (epsilon === null) return "";
  return ` As long as all noise is Gaussian it is ε = ${Number(epsilon.toPrecision(3))}.`;
}

/** The promise to an individual, and the bound on its loss so far where that is below the promise. */
export function promiseWords(account) {
  const soFar = account.epsilon_so_far_time_uniform;
  const few = (value) => Number(value.toPrecision(3));
  const bound = `ε = ${few(account.promise_epsilon)}${Number(account.delta) ? `, δ = ${small(account.delta)}` : ""}`;
  const promise = `You were promised ${bound}, over everything that is ever asked.${advisoryWords(account)}`;
  if (soFar === null) return promise;
  const used = `${promise} So far at most ε = ${few(soFar)} has been used`;
  return Number(account.delta) ? `${used}, with a probability of 1 − δ.` : `${used}.`;
}
