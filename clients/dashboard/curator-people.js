// One individual by key, requests of erasures, exports.

import { bytes, erase, get, path, withQuery } from "./api.js";
import { recordPart } from "./curator-record.js";
import { download, field, fill, h } from "./dom.js";
import { count, number, percent, rho, small } from "./format.js";
import { receiptsTable } from "./receipts.js";
import { draw, facts, form, problem } from "./shell.js";
import { askingWords, unitLetter, unitSign } from "./words.js";

const ASKING_SHOWN = 20;
const RECEIPTS = 20;

export async function peopleSection({ dataset, asking, changed }) {
  const at = (/** @type {string[]} */ ...parts) => path("datasets", dataset.name, ...parts);
  const requests = h.div();
  const person = h.div({ "aria-live": "polite" });
  const key = h.input({ name: "key", required: true, autocomplete: "off" });
  const erased = (/** @type {string} */ name) => {
    const place = asking.indexOf(name);
    if (place >= 0) asking.splice(place, 1);
    fill(requests, askingPart(asking, look));
    changed();
  };
  function look(/** @type {string} */ name, isLeaving = false) {
    key.value = name;
    draw(person, () => onePerson(dataset, at, name, { isLeaving, erased }));
  }
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    look(key.value);
  };
  const button = h.button({ type: "submit", class: "main" }, "Show the account");
  fill(requests, askingPart(asking, look));
  return h.section(
    h.h1("People"),
    requests,
    h.form({ onsubmit: submit }, h.div({ class: "fields" }, field("Key of the individual", key), button)),
    person,
    exports(dataset, at),
  );
}

/** The requests of erasure, those who asked first first: each opens the account, or the form that erases it. */
function askingPart(
  /** @type {string[]} */ asking,
  /** @type {(name: string, isLeaving?: boolean) => void} */ look,
  most = ASKING_SHOWN,
) {
  if (!asking.length) return null;
  const plain = (/** @type {string} */ text, /** @type {() => void} */ onclick) =>
    h.button({ class: "plain", type: "button", onclick }, text);
  const one = (/** @type {string} */ name) =>
    h.li(
      h.span(
        { class: "row" },
        plain(name, () => look(name)),
        plain(`Erase ${name} …`, () => look(name, true)),
      ),
    );
  const rest = h.div();
  const more = asking.length - most;
  const further = () => fill(node, ...(askingPart(asking, look, most + 10 * ASKING_SHOWN)?.childNodes ?? []));
  if (more > 0) fill(rest, h.button({ type: "button", onclick: further }, `Show more of ${count(more)} others`));
  const node = h.div(
    { class: "note problem" },
    h.strong(askingWords(asking.length)),
    h.ul(asking.slice(0, most).map(one)),
    rest,
  );
  return node;
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
      `One row for each individual: limit, spent and left in ${unitLetter(dataset)}, and the numbers of queries that`,
      " charged it and left it out.",
    ),
  );
}

async function onePerson(dataset, at, /** @type {string} */ name, { isLeaving, erased }) {
  const receipts = (/** @type {string | null} */ cursor) =>
    get(withQuery(at("receipts"), { individual: name, limit: RECEIPTS, cursor }));
  const address = withQuery(at("individual"), { individual: name });
  const [account, first] = await Promise.all([get(address), receipts(null)]);
  return h.section(
    h.h2(`Individual ${name}`),
    facts([
      [percent(account.spent_units / Math.max(account.budget_units, 1)), "of the limit is spent"],
      [rho(account.budget_rho), `limit, ${unitLetter(dataset)}`],
      [rho(account.remaining_rho), `left, ${unitLetter(dataset)}`],
      [count(account.queries_charged), "queries charged"],
      [count(account.queries_left_out), "queries left it out"],
      account.paused && ["paused", "takes part in nothing"],
    ]),
    receiptsTable(first, receipts, dataset.budget_rho, unitSign(dataset)),
    divergencePart(at, name),
    recordPart(dataset, at, name),
    h.details({ open: isLeaving }, h.summary("Erase this individual …"), erasing(name, address, erased)),
  );
}

/** The divergence of the record along the run, which is fetched once the warning above it has been opened. */
function divergencePart(at, /** @type {string} */ name) {
  const shown = h.div();
  const ontoggle = (/** @type {Event} */ event) => {
    const { open } = /** @type {HTMLDetailsElement} */ (event.target);
    if (open) draw(shown, async () => divergenceOf(await get(withQuery(at("divergence"), { individual: name }))));
  };
  return h.details(
    { ontoggle },
    h.summary("How far the answers depend on this record …"),
    h.p(
      "This number depends on the record and on the answers. It is not a guarantee, and must not leave the curator:",
      " told to anybody else, it would say something about this person.",
    ),
    shown,
  );
}

const divergenceOf = (told) =>
  facts([
    [`ε = ${number(told.epsilon)}${Number(told.delta) ? `, δ = ${small(told.delta)}` : ""}`, "along this run"],
    [count(told.sequence), told.sequence === 1 ? "query answered by then" : "queries answered by then"],
  ]);

function erasing(
  /** @type {string} */ name,
  /** @type {string} */ address,
  /** @type {(name: string) => void} */ erased,
) {
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
        erased(name);
        return `Individual ${name} is erased.`;
      },
      { button: "Erase", main: false },
    ),
  );
}
