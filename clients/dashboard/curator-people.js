// One individual by key, requests of erasures, exports; and the analysts with their allowances.

import { erase, get, patch, path, withQuery } from "./api.js";
import { field, fill, h, table } from "./dom.js";
import { count, instant, percent, rho } from "./format.js";
import { receiptsTable } from "./receipts.js";
import { draw, facts, form } from "./shell.js";

export async function peopleSection({ dataset }) {
  const at = (...parts) => path("datasets", dataset.name, ...parts);
  const person = h.div({ "aria-live": "polite" });
  const key = h.input({ name: "key", required: true, autocomplete: "off" });
  const asking = await get(at("erasure-requests"));
  const look = (name) => draw(person, () => onePerson(dataset, at, name));
  const looking = h.form(
    {
      onsubmit: (event) => {
        event.preventDefault();
        look(key.value);
      },
    },
    h.div(
      { class: "fields" },
      field("Key of the individual", key),
      h.button({ type: "submit", class: "main" }, "Show the account"),
    ),
  );
  return h.section(
    h.h1("People"),
    asking.length > 0 &&
      h.div(
        { class: "note problem" },
        h.strong(
          asking.length === 1 ? "One person asks to be erased." : `${count(asking.length)} people ask to be erased.`,
        ),
        h.ul(
          asking.slice(0, 20).map((name) =>
            h.li(
              h.button(
                {
                  class: "plain",
                  type: "button",
                  onclick: () => {
                    key.value = name;
                    look(name);
                  },
                },
                name,
              ),
            ),
          ),
        ),
      ),
    looking,
    person,
    h.section(
      h.h2("All accounts as a file"),
      h.div({ class: "row" }, exporting(dataset, at, "csv"), exporting(dataset, at, "parquet")),
      h.p(
        { class: "soft small" },
        "One row for each individual: limit, spent and left in ρ, and the numbers of queries that charged it and left it out.",
      ),
    ),
  );
}

function exporting(dataset, at, kind) {
  const type = kind === "csv" ? "text/csv" : "application/vnd.apache.parquet";
  const told = h.span({ class: "small soft", role: "status" });
  return h.span(
    { class: "row" },
    h.button(
      {
        type: "button",
        onclick: async () => {
          told.textContent = "making the file …";
          try {
            const response = await fetch(at("budgets", "export"), { headers: { Accept: type } });
            if (!response.ok) throw new Error(`The service answered with status ${response.status}.`);
            const url = URL.createObjectURL(await response.blob());
            h.a({ href: url, download: `${dataset.name}-budgets.${kind}` }).click();
            setTimeout(() => URL.revokeObjectURL(url), 1000);
            told.textContent = "";
          } catch (error) {
            told.textContent = error.message;
          }
        },
      },
      kind === "csv" ? "CSV" : "Parquet",
    ),
    told,
  );
}

async function onePerson(dataset, at, name) {
  const [account, receipts] = await Promise.all([
    get(`${at("individuals")}/${encodeURIComponent(name)}`),
    get(withQuery(at("receipts"), { individual: name, limit: 20 })),
  ]);
  const done = h.div({ "aria-live": "polite" });
  const typed = h.input({ name: "typed", autocomplete: "off", required: true });
  return h.section(
    h.h2(`Individual ${name}`),
    facts([
      [percent(account.spent_units / Math.max(account.budget_units, 1)), "of the limit is spent"],
      [rho(account.budget_rho), "limit, ρ"],
      [rho(account.remaining_rho), "left, ρ"],
      [count(account.queries_charged), "queries charged"],
      [count(account.queries_left_out), "queries left it out"],
      account.paused && ["paused", "takes part in nothing"],
    ]),
    receiptsTable(
      receipts,
      (cursor) => get(withQuery(at("receipts"), { individual: name, limit: 20, cursor })),
      dataset.budget_rho,
    ),
    h.details(
      h.summary("Erase this individual …"),
      h.div(
        { class: "note problem" },
        h.p(
          "The record, the keys and the charges in the ledger that name this individual are erased for good. The spent total stays under a keyed hash, so that no one's budget starts anew.",
        ),
        form(
          [field(`Type the key ${name} to confirm`, typed)],
          async (data) => {
            if (data.typed !== name) throw new Error(`The confirmation must be exactly ${name}.`);
            await erase(`${at("individuals")}/${encodeURIComponent(name)}`);
            return `Individual ${name} is erased.`;
          },
          { button: "Erase", main: false },
        ),
      ),
      done,
    ),
  );
}

export async function analystsSection({ dataset, session }) {
  const rows = await get(path("datasets", dataset.name, "analysts"));
  const open = rows.items ?? rows;
  const budget = Number(dataset.budget_rho);
  const bounded = open.filter((row) => row.allowance_rho !== null && !row.revoked_at);
  const together = bounded.reduce((sum, row) => sum + Number(row.allowance_rho), 0);
  const changing = h.div();
  const columns = [
    { title: "Name", cell: (row) => [row.name, row.organisation && h.div({ class: "small soft" }, row.organisation)] },
    { title: "Purpose", class: "words", cell: (row) => row.purpose ?? "" },
    {
      title: "Worst case asked",
      number: true,
      cell: (row) =>
        h.span({ title: `ρ ${row.worst_case_spent_rho}` }, percent(Number(row.worst_case_spent_rho) / budget)),
    },
    {
      title: "Allowance",
      number: true,
      cell: (row) => (row.allowance_rho === null ? "no limit" : percent(Number(row.allowance_rho) / budget)),
    },
    {
      title: "Used of it",
      number: true,
      cell: (row) =>
        row.allowance_rho === null || Number(row.allowance_rho) === 0
          ? ""
          : percent(Number(row.worst_case_spent_rho) / Number(row.allowance_rho)),
    },
    {
      title: "Until",
      cell: (row) =>
        row.revoked_at ? `revoked ${instant(row.revoked_at)}` : row.expires_at ? instant(row.expires_at) : "",
    },
  ];
  if (session.dataset === null)
    columns.push({
      title: "Change",
      cell: (row) =>
        !row.revoked_at &&
        h.button({ class: "plain", type: "button", onclick: () => fill(changing, change(row, budget)) }, "Change"),
    });
  return h.section(
    h.h1("Analysts"),
    open.length ? table("Analysts", columns, open) : h.p({ class: "empty" }, "No analyst has a key for this dataset."),
    changing,
    h.p(
      { class: "soft small" },
      `Shares are of the dataset's budget, ρ ${rho(dataset.budget_rho)}. An allowance bounds the sum of the worst cases of an analyst's queries. ${oversubscribed(together, budget, open.length - bounded.length)}`,
    ),
  );
}

function oversubscribed(together, budget, without) {
  if (without) return `${count(without)} of the keys have no allowance.`;
  if (together <= budget)
    return `All allowances together are ${percent(together / budget)} of the budget: no one can be left out while they are kept.`;
  return `All allowances together are ${(together / budget).toFixed(1)} times the budget: in the worst case people are left out before they are used up, and each person's guarantee holds all the same.`;
}

function change(row, budget) {
  const allowance = h.input({
    name: "allowance",
    type: "number",
    min: "0",
    step: "any",
    value: row.allowance_rho === null ? "" : String((100 * Number(row.allowance_rho)) / budget),
  });
  return h.div(
    { class: "card" },
    h.h2(`Allowance of ${row.name}`),
    form([field("Per cent of the dataset's budget; empty for no limit", allowance)], async (data) => {
      const rhoText = data.allowance === "" ? null : String((Number(data.allowance) / 100) * budget);
      await patch(path("principals", row.id), { allowance_rho: rhoText });
      return "The allowance holds from the next query on. Load the page again to see it in the list.";
    }),
  );
}
