// Keys: made, listed, revoked. A key is shown once.

import { all, erase, get, pageWithItems, path, post, withQuery } from "./api.js";
import { individualsOf } from "./columns.js";
import { calmly, download, field, fill, h, select, table } from "./dom.js";
import { csv, date, readCsv, rho } from "./format.js";
import { form, problem } from "./shell.js";
import { unitSign } from "./words.js";

const PAGE = 100;
const ROLES = ["analyst", "individual", "auditor", "curator"];

export async function keysSection() {
  const datasets = await all("/v1/datasets");
  const { node, added } = await keysList(datasets);
  return [
    h.section(h.h1("Keys"), making(datasets, added)),
    h.section(h.h2("Keys for many individuals"), many(datasets)),
    h.section(h.h2("All keys"), node),
  ];
}

/** The keys that match a search, page after page, with what can be done to each. */
async function keysList(/** @type {any[]} */ datasets) {
  const signs = new Map(datasets.map((each) => [each.name, unitSign(each)]));
  const told = h.div({ "aria-live": "polite" });
  const shown = h.div();
  const search = h.input({ type: "search", maxlength: "200", placeholder: "name, role, dataset or individual" });
  /** @type {any[]} */
  let rows = [];
  let next = null;
  async function load(/** @type {string | null} */ cursor) {
    const query = { limit: PAGE, search: search.value.trim() };
    const page = await pageWithItems((place) => get(withQuery("/v1/principals", { ...query, cursor: place })), cursor);
    rows = cursor ? [...rows, ...page.items] : page.items;
    next = page.next;
    list();
  }
  const reload = (cursor = null) => load(cursor).catch((error) => fill(told, problem(error)));
  function list() {
    fill(
      shown,
      rows.length ? table("Keys", columns(act, signs), rows) : h.p({ class: "empty" }, "No key matches."),
      next && h.button({ type: "button", onclick: () => reload(next) }, "More keys"),
    );
  }
  /** Ask before `task`, and tell what came of it. */
  async function act(question, task) {
    if (!confirm(question)) return;
    fill(told, await task().catch(problem));
    list();
  }
  const added = (made) => {
    rows = [{ ...made, created_at: new Date().toISOString(), revoked_at: null }, ...rows];
    list();
  };
  search.addEventListener(
    "input",
    calmly(() => reload()),
  );
  await load(null);
  const fields = h.div({ class: "fields" }, field("Search", search, "Every word must be in it."));
  return { node: h.div({ class: "stack" }, fields, told, shown), added };
}

function columns(act, /** @type {Map<string, string>} */ signs) {
  const small = (text) => text && h.div({ class: "small soft" }, text);
  return [
    { title: "Name", cell: (row) => [row.name, small(row.organisation)] },
    { title: "Role", cell: (row) => row.role },
    { title: "Dataset", cell: (row) => row.dataset ?? "all" },
    { title: "Individual", cell: (row) => row.individual },
    { title: "Allowance", number: true, cell: (row) => row.role === "analyst" && allowed(row, signs) },
    { title: "Made", cell: (row) => date(row.created_at) },
    { title: "State", cell: stateOf },
    { title: "Actions", cell: (row) => !row.revoked_at && actions(row, act) },
  ];
}

const allowed = (row, /** @type {Map<string, string>} */ signs) =>
  row.allowance_rho === null ? rho(null) : `${signs.get(row.dataset) ?? ""}${rho(row.allowance_rho)}`;

function stateOf(row) {
  if (row.revoked_at) return `revoked ${date(row.revoked_at)}`;
  return row.expires_at ? `until ${date(row.expires_at)}` : "valid";
}

function actions(row, act) {
  const replace = () =>
    act(`Make a new key for ${row.name}? The old one stops at once.`, async () => {
      const made = await post(path("principals", row.id, "key"));
      return once(`New key of ${row.name}`, made.key);
    });
  const revoke = () =>
    act(`Revoke the key of ${row.name}? It stops at once, for good.`, async () => {
      await erase(path("principals", row.id));
      row.revoked_at = new Date().toISOString();
      return h.div({ class: "note" }, `The key of ${row.name} is revoked.`);
    });
  return h.span(
    { class: "row" },
    h.button({ class: "plain", type: "button", onclick: replace }, "New key"),
    h.button({ class: "plain", type: "button", onclick: revoke }, "Revoke"),
  );
}

/** A key that is shown once. */
function once(title, key) {
  return h.div(
    { class: "note" },
    h.strong(title),
    h.p("It is shown now and never again."),
    h.div({ class: "key" }, key),
    h.div(h.button({ type: "button", onclick: () => navigator.clipboard?.writeText(key) }, "Copy")),
  );
}

/** @returns {string[]} */
const namesOf = (datasets) => datasets.map((each) => each.name);
const validUntil = () => field("Valid until", h.input({ name: "expires_at", type: "date" }), "Empty for no end");

/** The end of a day, here; nothing for an empty field. */
const endOf = (/** @type {string} */ day) => (day ? new Date(`${day}T23:59:59`).toISOString() : null);

function making(datasets, added) {
  const names = namesOf(datasets);
  const role = select("role", ROLES, "analyst", { onchange: fit });
  const individual = field("Key of the individual in the data", h.input({ name: "individual", autocomplete: "off" }));
  const share = h.input({ name: "allowance", type: "number", min: "0", step: "any" });
  const allowance = field("Allowance, per cent of the budget", share, "Empty for no limit");
  const limits = h.div({ class: "fields" }, individual, allowance);
  function fit() {
    individual.hidden = role.value !== "individual";
    allowance.hidden = role.value !== "analyst";
    limits.hidden = individual.hidden && allowance.hidden;
  }
  fit();
  const shownToIndividuals = (/** @type {string} */ name, /** @type {string} */ label) =>
    field(label, h.input({ name, maxlength: "200" }), "Shown to individuals");
  const name = h.input({ name: "name", required: true, maxlength: "128", autocomplete: "off" });
  const dataset = select("dataset", [["", "all datasets"], ...names], names[0] ?? "");
  const fields = [
    h.div({ class: "fields" }, field("Role", role), field("Name", name), field("Dataset", dataset)),
    h.div(
      { class: "fields" },
      shownToIndividuals("organisation", "Organisation"),
      shownToIndividuals("purpose", "Purpose"),
      validUntil(),
    ),
    limits,
  ];
  return form(fields, (data) => make(data, datasets, added), { button: "Make the key" });
}

async function make(data, datasets, added) {
  const { key, ...made } = await post("/v1/principals", {
    role: data.role,
    name: data.name,
    dataset: data.dataset || null,
    organisation: data.organisation || null,
    purpose: data.purpose || null,
    expires_at: endOf(data.expires_at),
    individual: data.role === "individual" ? data.individual : null,
    allowance_rho: data.role === "analyst" && data.allowance ? allowanceOf(data, datasets) : null,
  });
  added(made);
  return once(`Key of ${made.name}`, key);
}

function allowanceOf(data, datasets) {
  const dataset = datasets.find((each) => each.name === data.dataset);
  if (!dataset) throw new Error("An allowance in per cent needs a dataset.");
  return String((Number(data.allowance) / 100) * Number(dataset.budget_rho));
}

function many(datasets) {
  if (!datasets.length) return h.p({ class: "empty" }, "Register a dataset first.");
  const names = namesOf(datasets);
  const fields = [
    h.p(
      { class: "soft" },
      "A CSV file with the keys of the individuals in the column that has the key's name in the data, or in its only",
      " column. You get a file of keys back, once.",
    ),
    h.div(
      { class: "fields" },
      field("Dataset", select("dataset", names, names[0])),
      field("File", h.input({ type: "file", name: "file", accept: ".csv", required: true })),
      validUntil(),
    ),
  ];
  return form(fields, makeMany, { button: "Make the keys", main: false });
}

async function makeMany(data) {
  const dataset = await get(path("datasets", data.dataset));
  const individuals = keysIn(await data.file.text(), dataset.tables[individualsOf(dataset)].key);
  const address = path("datasets", dataset.name, "individuals", "keys");
  const made = await post(withQuery(address, { expires_at: endOf(data.expires_at) }), individuals);
  const rows = made.map((each) => [each.individual, each.api_key]);
  download(`${dataset.name}-keys.csv`, "text/csv", csv(["individual", "api_key"], rows));
  return `${made.length} keys are in the file that was just saved. They are shown nowhere else.`;
}

/** The column of this name, or the only one. */
function keysIn(/** @type {string} */ text, /** @type {string} */ name) {
  const [header = [], ...rows] = readCsv(text);
  const place = header.length === 1 ? 0 : header.indexOf(name);
  if (place < 0) throw new Error(`The file has several columns, and none of them is ${name}.`);
  return rows.map((row) => row[place]).filter(Boolean);
}
