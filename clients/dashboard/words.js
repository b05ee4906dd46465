// Every sentence that the pages say more than once.

import { count, number, people, percent, rho, small, times } from "./format.js";

/** @typedef {{ epsilon: string | null, delta: string | null, rho?: string }} Promised what each person is promised */

/** @returns {Promised} of a dataset */
export const promisedBy = (dataset) => ({ ...dataset.guarantee, rho: rho(dataset.budget_rho) });

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
  `δ = ${small(delta)} is the chance that this could fail.`,
];

const boundOfRho = (/** @type {Promised} */ promised) => [
  `A limit of ρ = ${promised.rho} bounds the privacy loss of all answers together, in zero-concentrated differential` +
    " privacy, compared with a person's data being blank.",
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

/** The title of the histogram of budgets. */
export function budgetsTitle(summary) {
  const middle = summary.quantiles["0.5"];
  if (!summary.individuals) return "No one is in the dataset yet.";
  const half = `Half of the people have more than ${percent(middle)} left`;
  const last = summary.last_query;
  if (!last) return `${half}; no query was asked yet.`;
  return last.cannot_afford
    ? `${half}; ${count(last.cannot_afford)} cannot afford another query like the last.`
    : `${half}; everyone can afford another query like the last.`;
}

export function forecastTitle(forecast) {
  if (!forecast.touched) return "Such a query touches no one.";
  const at = forecast.dropped_after
    .filter((each) => each.queries !== null && each.queries > 0)
    .map((each) => `${percent(each.share)} after ${number(each.queries)}`);
  const now = forecast.touched - forecast.active;
  const lost = now
    ? `${people(now)} of ${count(forecast.touched)} would be left out at once`
    : `All ${people(forecast.touched)} that it touches can pay for one`;
  return at.length
    ? `${lost}; drop-outs: ${at.join(", ")} such queries.`
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
  left_out: "left you out",
  untouched: "did not concern you",
  no_longer_kept: "no longer kept",
};

/** The promise to an individual, and the bound on its loss so far where that is below the promise. */
export function promiseWords(account) {
  const soFar = account.epsilon_so_far_time_uniform;
  const few = (value) => Number(value.toPrecision(3));
  const bound = `ε = ${few(account.promise_epsilon)}, δ = ${small(account.delta)}`;
  const promise = `You were promised ${bound}, over everything that is ever asked.`;
  if (soFar === null) return promise;
  return `${promise} So far at most ε = ${few(soFar)} has been used, with a probability of 1 − δ.`;
}
