// One individual by key, requests of erasures, exports.

import { bytes, erase, get, path, withQuery } from "./api.js";
import { download, field, fill, h } from "./dom.js";
import { count, percent, rho } from "./format.js";
import { receiptsTable } from "./receipts.js";
import { draw, facts, form, problem } from "./shell.js";

const ASKING_SHOWN = 20;
const RECEIPTS = 20;

export async function peopleSection({ dataset }) {
  const at = (/** @type {string[]} */ ...parts) => path("datasets", dataset.name, ...parts);
  const asking = await get(at("erasure-requests"));
  const person = h.div({ "aria-live": "polite" });
  const key = h.input({ name: "key", required: true, autocomplete: "off" });
  const look = (/** @type {string} */ name) => {
    key.value = name;
    draw(person, () => onePerson(dataset, at, name));
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    look(key.value);
  };
  const button = h.button({ type: "submit", class: "main" }, "Show the account");
  return h.section(
    h.h1("People"),
    asking.length > 0 && askingPart(asking, look),
    h.form({ onsubmit: submit }, h.div({ class: "fields" }, field("Key of the individual", key), button)),
    person,
    exports(dataset, at),
  );
}

function askingPart(/** @type {string[]} */ asking, /** @type {(name: string) => void} */ look) {
  const one = (/** @type {string} */ name) =>
    h.li(h.button({ class: "plain", type: "button", onclick: () => look(name) }, name));
  return h.div(
    { class: "note problem" },
    h.strong(
      asking.length === 1 ? "One person asks to be erased." : `${count(asking.length)} people ask to be erased.`,
    ),
    h.ul(asking.slice(0, ASKING_SHOWN).map(one)),
  );
}

function exports(dataset, at) {
  const told = h.span({ class: "small soft", role: "status" });
  const button = (/** @type {string} */ text, /** @type {string} */ ending, /** @type {string} */ type) =>
    h.button({ type: "button", onclick: () => save(`${dataset.name}-budgets.${ending}`, type) }, text);
  async function save(/** @type {string} */ name, /** @type {string} */ type) {
    fill(told, "making the file …");
    try {
      download(name, type, await bytes(at("budgets", "export"), type));
      fill(told);
    } catch (error) {
      fill(told, problem(error));
    }
  }
  return h.section(
    h.h2("All accounts as a file"),
    h.div(
      { class: "row" },
      button("CSV", "csv", "text/csv"),
      button("Parquet", "parquet", "application/vnd.apache.parquet"),
      told,
    ),
    h.p(
      { class: "soft small" },
      "One row for each individual: limit, spent and left in ρ, and the numbers of queries that charged it and left it",
      " out.",
    ),
  );
}

async function onePerson(dataset, at, /** @type {string} */ name) {
  const receipts = (/** @type {string | null} */ cursor) =>
    get(withQuery(at("receipts"), { individual: name, limit: RECEIPTS, cursor }));
  const [account, first] = await Promise.all([get(at("individuals", name)), receipts(null)]);
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
    receiptsTable(first, receipts, dataset.budget_rho),
    h.details(h.summary("Erase this individual …"), erasing(name, at("individuals", name))),
  );
}

function erasing(/** @type {string} */ name, /** @type {string} */ address) {
  const typed = h.input({ name: "typed", autocomplete: "off", required: true });
  return h.div(
    { class: "note problem" },
    h.p(
      "The record, the keys and the charges in the ledger that name this individual are erased for good. The spent",
      " total stays under a keyed hash, so that no one's budget starts anew.",
    ),
    form(
      field(`Type the key ${name} to confirm`, typed),
      async (data) => {
        if (data.typed !== name) throw new Error(`The confirmation must be exactly ${name}.`);
        await erase(address);
        return `Individual ${name} is erased.`;
      },
      { button: "Erase", main: false },
    ),
  );
}
