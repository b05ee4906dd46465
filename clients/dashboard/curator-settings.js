// Changes of a registration, all of them public acts: extended, begun anew, ended.

import { erase, Problem, patch, path, post } from "./api.js";
import { entriesOf, individualsOf } from "./columns.js";
import { field, fill, h, select } from "./dom.js";
import { count } from "./format.js";
import { columnForm, columnOf, newColumn, newEvents, tableForm, tableOf } from "./schema-form.js";
import { form } from "./shell.js";

/** @typedef {(body: { capacity?: number, tables?: any }, done: string) => Promise<void>} Extend */

export async function settingsSection({ dataset: found, session, go }) {
  const shown = h.div({ class: "stack" });
  function show(dataset, /** @type {string} */ done = "") {
    /** @type {Extend} */
    const extend = async (body, words) => {
      show(await patch(path("datasets", dataset.name), body), words);
    };
    fill(
      shown,
      h.div({ "aria-live": "polite" }, done && h.div({ class: "note" }, done)),
      dataset.archived ? archivedNote() : [extending(dataset, extend), epochPart(dataset, show)],
      endings(dataset, session, { go, show }),
    );
  }
  show(found);
  return h.section(h.h1("Settings"), shown);
}

export const archivedNote = () =>
  h.div(
    { class: "note" },
    h.strong("This dataset is archived."),
    h.p("It takes no query and no row any more, for good. Its ledger, its answers and the accounts are kept."),
  );

function extending(dataset, /** @type {Extend} */ extend) {
  return h.section(
    h.h2("Add to the dataset"),
    h.p(
      { class: "soft" },
      "Additions are public and for good: what is there keeps its meaning. Rows that are there have no value in a new",
      " column. Each addition opens a new epoch, in which queries are answered afresh.",
    ),
    h.div(
      { class: "cards" },
      categoriesCard(dataset, extend),
      columnCard(dataset, extend),
      capacityCard(dataset, extend),
    ),
    tableCard(dataset, extend),
  );
}

const card = (/** @type {string} */ title, /** @type {import("./dom.js").Part[]} */ ...parts) =>
  h.div({ class: "card" }, h.h3(title), parts);

/** The tables with a column of one of them as `change` makes it of what is there. */
function withColumn(dataset, /** @type {string} */ table, /** @type {string} */ name, column) {
  const changed = dataset.tables[table];
  return { ...dataset.tables, [table]: { ...changed, columns: { ...changed.columns, [name]: column } } };
}

function categoriesCard(dataset, /** @type {Extend} */ extend) {
  const names = Object.keys(dataset.tables).flatMap((table) =>
    Object.entries(dataset.tables[table].columns)
      .filter(([, column]) => column.type === "category")
      .map(([name]) => `${table}.${name}`),
  );
  if (!names.length) return null;
  const of = select("of", names, names[0], { onchange: fit });
  const domain = h.div();
  const column = () => {
    const [table, name] = of.value.split(".");
    return dataset.tables[table].columns[name];
  };
  function fit() {
    const { categories, size } = column();
    const all = h.input({ name: "size", type: "number", required: true, min: String(size ?? 1), value: String(size) });
    const lines = h.textarea({ name: "added", required: true, rows: "3" });
    fill(domain, categories ? field("New categories, one a line", lines) : field("How many in all", all));
  }
  fit();
  return card(
    "Categories",
    form(
      [field("Column", of), domain],
      async (data) => {
        const { categories } = column();
        const added = categories ? entriesOf(data.added) : [];
        const wide = categories ? { categories: [...categories, ...added] } : { size: Number(data.size) };
        const [table, name] = of.value.split(".");
        const words = categories
          ? `${of.value} has ${count(added.length)} more.`
          : `${of.value} has ${data.size} in all.`;
        await extend({ tables: withColumn(dataset, table, name, { ...column(), ...wide }) }, `Categories: ${words}`);
      },
      { button: "Add categories", main: false },
    ),
  );
}

function columnCard(dataset, /** @type {Extend} */ extend) {
  const names = Object.keys(dataset.tables);
  const table = select("table", names, individualsOf(dataset));
  const columns = [newColumn()];
  const made = h.div();
  const show = () => {
    fill(made, columnForm(columns, 0, { tell: () => {}, show }, true));
  };
  show();
  const add = async () => {
    const [column] = columns;
    const tables = withColumn(dataset, table.value, column.name, columnOf(column));
    await extend({ tables }, `Column ${column.name} is added to ${table.value}.`);
  };
  return card("A column", form([field("Table", table), made], add, { button: "Add the column", main: false }));
}

function tableCard(dataset, /** @type {Extend} */ extend) {
  const { key } = dataset.tables[individualsOf(dataset)];
  const state = { tables: [newEvents(key)] };
  const made = h.div();
  const show = () => {
    fill(made, tableForm(state, 0, { tell: () => {}, show }));
  };
  show();
  const add = async () => {
    const [table] = state.tables;
    await extend({ tables: { ...dataset.tables, [table.name]: tableOf(table) } }, `Table ${table.name} is added.`);
  };
  return card("A table of events", form(made, add, { button: "Add the table", main: false }));
}

function capacityCard(dataset, /** @type {Extend} */ extend) {
  const { capacity } = dataset;
  const input = h.input({
    name: "capacity",
    type: "number",
    required: true,
    min: String(capacity),
    value: `${capacity}`,
  });
  return card(
    "Capacity",
    form(
      field("Individuals, at most", input, `Now ${count(capacity)}; it cannot be lowered.`),
      async (data) => {
        const wished = Number(data.capacity);
        await extend({ capacity: wished }, `The dataset takes up to ${count(wished)} individuals.`);
      },
      { button: "Raise the capacity", main: false },
    ),
  );
}

function epochPart(dataset, /** @type {(dataset: any, done: string) => void} */ show) {
  const begin = async () => {
    const { epoch } = await post(path("datasets", dataset.name, "epochs"));
    show({ ...dataset, epoch }, `Epoch ${epoch} has begun.`);
  };
  return h.section(
    h.h2(`Epoch ${count(dataset.epoch)}`),
    h.p(
      { class: "soft" },
      "Within an epoch, a query that was answered before is answered again with the same numbers, free of charge. A",
      " new epoch has everything asked afresh.",
    ),
    form([], begin, { button: "Begin the next epoch", main: false }),
  );
}

function endings(dataset, session, { go, show }) {
  const { name, archived, sequence } = dataset;
  const archive = async (/** @type {Record<string, string>} */ data) =>
    show(await post(path("datasets", name, "archive"), { rows: data.rows }), `${name} is archived.`);
  const remove = async () => {
    await erase(path("datasets", name));
    go("/curator");
  };
  const rows = select(
    "rows",
    [
      ["keep", "keep the rows"],
      ["delete", "delete the rows of all tables"],
    ],
    "keep",
  );
  const mayDelete = session.dataset === null && sequence === 0;
  return h.section(
    h.h2("End the dataset"),
    h.div(
      { class: "cards" },
      card(
        archived ? "Delete the rows that were kept" : "Archive",
        h.p("No query and no row is taken from then on, for good. Ledger, answers and accounts stay."),
        confirmed(name, field("Rows", rows), archive, archived ? "Archive again" : "Archive"),
      ),
      mayDelete &&
        card(
          "Delete",
          h.p("The dataset goes with its rows and its keys. Only one that never answered a query can be deleted."),
          confirmed(name, [], remove, "Delete"),
        ),
    ),
    !mayDelete && sequence > 0 && h.p({ class: "soft small" }, "It has answered queries, so it cannot be deleted."),
  );
}

/** A form that does nothing before the dataset's name is typed. */
function confirmed(
  /** @type {string} */ name,
  /** @type {import("./dom.js").Part} */ fields,
  /** @type {(data: Record<string, any>) => Promise<void>} */ task,
  /** @type {string} */ button,
) {
  const typed = h.input({ name: "typed", autocomplete: "off", required: true });
  const run = async (/** @type {Record<string, any>} */ data) => {
    if (data.typed !== name)
      throw new Problem({ title: `The confirmation must be exactly ${name}. Nothing was changed.` });
    await task(data);
  };
  return form([fields, field(`Type ${name} to confirm`, typed)], run, { button, main: false });
}
