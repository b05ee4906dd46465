// Registration: a form that builds the schema row by row beside the JSON it makes. What a file proposes is confirmed.

import { Problem, post } from "./api.js";
import { check, field, fill, h, select } from "./dom.js";
import { number, times } from "./format.js";
import { AT_LEAST_ONE, acting, bound, newColumn, newEvents, tableForm, tableOf } from "./schema-form.js";
import { explained, form, problem } from "./shell.js";

/**
 * @typedef {import("./schema-form.js").Edited} Edited
 * @typedef {import("./schema-form.js").Redraw} Redraw
 */

/** @type {[string, string][]} */
const RULES = [
  ["skip", "is left out of that query"],
  ["drop", "is left out for good"],
];

/** @type {[string, string][]} */
const KEYS = [
  ["exact", "as they are written"],
  ["caseless", "without regard to case"],
  ["number", "as whole numbers"],
  ["uuid", "as UUIDs"],
];

/** @type {[string, string][]} */
const ACCOUNTINGS = [
  ["gdp", "Gaussian DP"],
  ["zcdp", "zero-concentrated DP"],
  ["rdp", "Rényi DP of one order"],
  ["pure", "pure DP: ε alone"],
];
/** @type {[string, string][]} */
const CONVERSIONS = [
  ["optimal", "the tightest known"],
  ["simple", "the textbook's"],
];
/** @type {Record<string, string>} what each is for, in a sentence */
const ACCOUNTING_HINTS = {
  gdp: "Buys most answers with Gaussian noise. The others are for people whose data are released elsewhere too.",
  zcdp: "Budgets of other releases in ρ of zero-concentrated DP add up with this one.",
  rdp: "Budgets of other releases at this order add up. One that is too low is refused, and the best one is named.",
  pure: "For few tables: a promise without δ. Queries are of one number for each person, with Laplace noise.",
};

const newState = () => ({
  name: "",
  epsilon: 1,
  delta: "1e-6",
  capacity: 10000,
  rule: "skip",
  keys: "exact",
  accounting: "gdp",
  order: 16,
  conversion: "optimal",
  monitor: { isWanted: false, rho: "0.001", ticks: 1024, share: 0.1 },
  tables: [{ name: "people", kind: "individuals", key: "person_id", columns: [newColumn()] }],
});

export function registerSection(/** @type {(address: string) => void} */ go) {
  const state = newState();
  const tables = h.div();
  const meaning = h.p({ class: "soft" });
  const json = h.textarea({ "aria-label": "The registration as JSON", spellcheck: "false", rows: "18", oninput });
  let byHand = false;
  function oninput() {
    byHand = true;
  }
  function tell() {
    meaning.textContent =
      `ε = ${state.epsilon}: all answers together change the odds of any guess about a person by at most a factor of` +
      ` ${number(Math.exp(state.epsilon))}.`;
    if (!byHand) json.value = JSON.stringify(registration(state), null, 2);
  }
  function show() {
    fill(tables, tableForms(state, { tell, show }));
    tell();
  }
  const propose = (/** @type {Edited} */ table) => {
    put(state.tables, table);
    show();
  };
  show();
  return [
    h.section(
      h.h1("Register a dataset"),
      h.p(
        "A registration is public and for good: analysts see the guarantee, the tables and the domains. Declare",
        " domains from what you know about the columns; a domain that is read off the data would tell something about",
        " the people in it.",
      ),
      proposing(propose),
      h.div(
        { class: "columns" },
        h.div({ class: "stack" }, guaranteeFields(state, tell), meaning, tables),
        form(field("The registration, as it will be sent", json), () => register(json.value, go), {
          button: "Register",
        }),
      ),
    ),
    explained({ epsilon: String(state.epsilon), delta: state.delta }),
  ];
}

/** The proposed table in the place of that of individuals or of its own name, or behind all. */
function put(/** @type {Edited[]} */ tables, /** @type {Edited} */ table) {
  const isSame = (/** @type {Edited} */ { kind, name }) =>
    kind === table.kind && (kind === "individuals" || name === table.name);
  const place = tables.findIndex(isSame);
  if (place < 0) tables.push(table);
  else tables[place] = table;
}

async function register(/** @type {string} */ text, /** @type {(address: string) => void} */ go) {
  const wished = JSON.parse(text);
  refuseUnconfirmed(wished.tables);
  const made = await post("/v1/datasets", wished);
  go(`/curator/${made.name}`);
}

/** A place for a file that proposes a table. */
function proposing(/** @type {(table: Edited) => void} */ propose) {
  const told = h.div({ class: "stack", "aria-live": "polite" });
  const look = async (/** @type {FileList | null | undefined} */ files) => {
    if (!files?.length) return;
    try {
      const { proposalOf } = await import("./schema-infer.js");
      const { table, notes } = await proposalOf(files[0]);
      propose(table);
      told.querySelector('[role="alert"]')?.remove();
      told.append(proposedNote(files[0].name, table, notes));
    } catch (error) {
      told.append(problem(error));
    }
  };
  const file = h.input({
    type: "file",
    accept: ".csv,.tsv,.txt,.parquet,.arrow,.arrows",
    onchange: () => look(file.files),
  });
  const ondrop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    look(event.dataTransfer?.files);
  };
  const ondragover = (/** @type {Event} */ event) => event.preventDefault();
  return h.div(
    { class: "card drop", ondrop, ondragover },
    field(
      "Drop or choose a file that proposes a table",
      file,
      "CSV is read in this browser and sent nowhere. Parquet and Arrow streams are read by the service, which keeps" +
        " nothing of them.",
    ),
    told,
  );
}

const proposedNote = (/** @type {string} */ file, /** @type {Edited} */ table, /** @type {string[]} */ notes) =>
  h.div(
    { class: "note" },
    h.strong(`${file} proposes the table ${table.name}, with ${times(table.columns.length, "column")}.`),
    h.p("Confirm or change each domain below: one that only this file tells says something about its people."),
    notes.map((each) => h.p(each)),
  );

/** Nothing that was read off a file is registered before it is confirmed. */
function refuseUnconfirmed(/** @type {Record<string, any>} */ tables) {
  const open = Object.entries(tables ?? {}).flatMap(([name, table]) => [
    ...("confirm" in table ? [name] : []),
    ...Object.keys(table.columns ?? {}).flatMap((column) =>
      "confirm" in table.columns[column] ? [`${name}.${column}`] : [],
    ),
  ]);
  if (open.length) throw new Problem({ title: `Not confirmed yet: ${open.join(", ")}.`, detail: "Nothing was sent." });
}

function guaranteeFields(/** @type {Edited} */ state, /** @type {() => void} */ tell) {
  const epsilon = h.input({ type: "range", min: "-2", max: "3", step: "0.1", value: "0" });
  epsilon.setAttribute("aria-label", "epsilon, logarithmic");
  epsilon.addEventListener("input", () => {
    state.epsilon = Number((2 ** Number(epsilon.value)).toPrecision(2));
    tell();
  });
  const delta = bound("δ", state, "delta", tell, { placeholder: "1e-6" });
  const more = h.div({ class: "stack" });
  const monitor = h.div({ class: "stack" });
  const accounting = select("accounting", ACCOUNTINGS, state.accounting);
  const accountFor = () => {
    state.accounting = accounting.value;
    delta.hidden = state.accounting === "pure";
    fill(more, accountingFields(state, tell));
    monitor.hidden = state.accounting === "pure";
    tell();
  };
  accounting.addEventListener("change", accountFor);
  fill(more, accountingFields(state, tell));
  fill(monitor, monitorFields(state.monitor, tell));
  return [
    h.div(
      { class: "fields" },
      bound("Name", state, "name", tell, { pattern: "[a-z0-9][a-z0-9_\\-]*", placeholder: "web-visits" }),
      bound("Individuals, at most", state, "capacity", tell, AT_LEAST_ONE),
    ),
    h.div(
      { class: "fields" },
      field("ε for each person", epsilon),
      delta,
      choice("Who cannot pay for a query", state, "rule", RULES, tell),
      field("Charges add up by", accounting),
      choice("Keys are compared", state, "keys", KEYS, tell),
    ),
    more,
    monitor,
  ];
}

/**
 * A list of words that the state may have.
 * @param {string} label
 * @param {Edited} state
 * @param {string} name
 * @param {[string, string][]} options
 * @param {() => void} tell
 */
function choice(label, state, name, options, tell) {
  const list = select(name, options, state[name]);
  list.addEventListener("change", () => {
    state[name] = list.value;
    tell();
  });
  return field(label, list);
}

/** A continual count of the exhausted, which is paid from a reserve of each limit. */
function monitorFields(/** @type {Edited} */ monitor, /** @type {() => void} */ tell) {
  const terms = h.div(
    { class: "fields", hidden: !monitor.isWanted },
    bound("Reserve in ρ", monitor, "rho", tell),
    bound("Ticks", monitor, "ticks", tell, AT_LEAST_ONE),
    bound("Exhausted below this share", monitor, "share", tell, { type: "number", min: "0", max: "1", step: "any" }),
  );
  const wanted = check("Keep a reserve of each limit for a curve of the exhausted", {
    checked: monitor.isWanted,
    onchange: (/** @type {Event} */ event) => {
      monitor.isWanted = /** @type {HTMLInputElement} */ (event.target).checked;
      terms.hidden = !monitor.isWanted;
      tell();
    },
  });
  return [wanted, terms];
}

/** The monitor as it is registered; nothing where none is wanted, or can be. */
function monitorOf(/** @type {Edited} */ { accounting, monitor: { isWanted, ...terms } }) {
  return isWanted && accounting !== "pure" ? { monitor: terms } : {};
}

/** What an accounting is for, and what has to be stated with it. */
function accountingFields(/** @type {Edited} */ state, /** @type {() => void} */ tell) {
  const { accounting } = state;
  const conversion = select("conversion", CONVERSIONS, state.conversion);
  conversion.addEventListener("change", () => {
    state.conversion = conversion.value;
    tell();
  });
  const isConverted = accounting === "zcdp" || accounting === "rdp";
  return [
    isConverted &&
      h.div(
        { class: "fields" },
        accounting === "rdp" && bound("Order", state, "order", tell, { type: "number", min: "1", step: "any" }),
        field("Conversion to ε and δ", conversion),
      ),
    h.p({ class: "small soft" }, ACCOUNTING_HINTS[accounting]),
  ];
}

/** The accounting as it is registered; nothing for the default. */
function accountingOf(/** @type {Edited} */ { accounting: kind, order, conversion }) {
  if (kind === "gdp") return {};
  const converted = conversion === "optimal" ? {} : { conversion };
  return { accounting: { kind, ...(kind === "rdp" && { order }), ...(kind === "pure" ? {} : converted) } };
}

function tableForms(/** @type {Edited} */ state, /** @type {Redraw} */ redraw) {
  const add = () => state.tables.push(newEvents(state.tables[0].key));
  return [
    state.tables.map((/** @type {Edited} */ _, /** @type {number} */ place) => tableForm(state, place, redraw)),
    h.div(acting("Add a table of events", add, redraw)),
  ];
}

/** The body of POST /v1/datasets. */
function registration(/** @type {Edited} */ state) {
  return {
    name: state.name,
    guarantee: { epsilon: String(state.epsilon), ...(state.accounting === "pure" ? {} : { delta: state.delta }) },
    capacity: state.capacity,
    rule: state.rule,
    keys: state.keys,
    ...accountingOf(state),
    ...monitorOf(state),
    tables: Object.fromEntries(state.tables.map((/** @type {Edited} */ each) => [each.name, tableOf(each)])),
  };
}
