// The analysts of a dataset: worst cases against allowances.

import { get, patch, path } from "./api.js";
import { field, fill, h, table } from "./dom.js";
import { count, instant, percent, portion, rho } from "./format.js";
import { form } from "./shell.js";
import { unitSign } from "./words.js";

export async function analystsSection({ dataset, session }) {
  const rows = await get(path("datasets", dataset.name, "analysts"));
  const budget = Number(dataset.budget_rho);
  const changing = h.div();
  const change = {
    title: "Change",
    cell: (row) =>
      !row.revoked_at &&
      h.button({ class: "plain", type: "button", onclick: () => fill(changing, changeCard(row, budget)) }, "Change"),
  };
  const columns = [...columnsOf(budget, unitSign(dataset)), ...(session.dataset === null ? [change] : [])];
  return h.section(
    h.h1("Analysts"),
    rows.length ? table("Analysts", columns, rows) : h.p({ class: "empty" }, "No analyst has a key for this dataset."),
    changing,
    h.p(
      { class: "soft small" },
      `Shares are of the dataset's budget, ${unitSign(dataset)}${rho(dataset.budget_rho)}. An allowance bounds the`,
      ` sum of the worst cases of an analyst's queries. ${together(rows, budget)}`,
    ),
  );
}

function columnsOf(/** @type {number} */ budget, /** @type {string} */ sign) {
  const share = (/** @type {string} */ text, whole = budget) => portion(Number(text) / whole);
  return [
    { title: "Name", cell: (row) => [row.name, row.organisation && h.div({ class: "small soft" }, row.organisation)] },
    { title: "Purpose", class: "words", cell: (row) => row.purpose },
    {
      title: "Worst case asked",
      number: true,
      cell: (row) => h.span({ title: `${sign}${row.worst_case_spent_rho}` }, share(row.worst_case_spent_rho)),
    },
    {
      title: "Allowance",
      number: true,
      cell: (row) => (row.allowance_rho === null ? "no limit" : share(row.allowance_rho)),
    },
    {
      title: "Used of it",
      number: true,
      cell: (row) => Number(row.allowance_rho) > 0 && share(row.worst_case_spent_rho, Number(row.allowance_rho)),
    },
    { title: "Until", cell: untilWords },
  ];
}

function untilWords(row) {
  if (row.revoked_at) return `revoked ${instant(row.revoked_at)}`;
  return row.expires_at && instant(row.expires_at);
}

/** What all allowances that can be used are together, against the budget. */
function together(rows, /** @type {number} */ budget) {
  const bounded = rows.filter((row) => row.allowance_rho !== null && !row.revoked_at);
  const without = rows.length - bounded.length;
  const share = bounded.reduce((sum, row) => sum + Number(row.allowance_rho), 0) / budget;
  if (without) return `${count(without)} of the keys have no allowance.`;
  if (share <= 1) {
    return `All allowances together are ${percent(share)} of the budget: no one can be left out while they are kept.`;
  }
  return (
    `All allowances together are ${share.toFixed(1)} times the budget: in the worst case people are left out before` +
    " they are used up, and each person's guarantee holds all the same."
  );
}

function changeCard(row, /** @type {number} */ budget) {
  const value = row.allowance_rho === null ? "" : String((100 * Number(row.allowance_rho)) / budget);
  const allowance = h.input({ name: "allowance", type: "number", min: "0", step: "any", value });
  return h.div(
    { class: "card" },
    h.h2(`Allowance of ${row.name}`),
    form(field("Per cent of the dataset's budget; empty for no limit", allowance), async (data) => {
      const wished = data.allowance === "" ? null : String((Number(data.allowance) / 100) * budget);
      await patch(path("principals", row.id), { allowance_rho: wished });
      return "The allowance holds from the next query on. Load the page again to see it in the list.";
    }),
  );
}
