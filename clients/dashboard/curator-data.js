// The data: tables in words, uploads, acts, epochs.

import { all, get, Problem, path, upload, withQuery } from "./api.js";
import { columnWords, individualsOf } from "./columns.js";
import { archivedNote } from "./curator-settings.js";
import { check, download, field, fill, h, select, table } from "./dom.js";
import { csvAsDeclared, TYPES, tableAsDeclared } from "./files.js";
import { count, csv, instant, number, percent, times } from "./format.js";
import { problem } from "./shell.js";
import { unitSign } from "./words.js";

/** @type {[string, string][]} */
const DELIMITERS = [
  ["", "the mark that its header has"],
  [",", "commas"],
  [";", "semicolons"],
  ["\t", "tabs"],
  ["|", "bars"],
];

export async function dataSection({ dataset, go }) {
  const acts = await get(withQuery(path("datasets", dataset.name, "acts"), { limit: 20 }));
  const cards = Object.keys(dataset.tables).map((name) => tableCard(dataset, name));
  return [
    h.section(h.h1("Data"), h.div({ class: "cards" }, cards)),
    dataset.archived ? archivedNote() : uploading(dataset, () => go(location.pathname)),
    actsPart(dataset, acts),
  ];
}

function actsPart(dataset, acts) {
  const sign = unitSign(dataset);
  const columns = [
    { title: "Act", number: true, cell: (act) => `#${act.number}` },
    { title: "At", cell: (act) => h.time({ datetime: act.at }, instant(act.at)) },
    { title: "What was done", cell: (act) => ACTS[act.act]?.(act.detail, sign) ?? act.act },
    { title: "Individual", cell: (act) => act.individual },
    { title: "After query", number: true, cell: (act) => `#${act.sequence}` },
  ];
  return h.section(
    h.h2("Acts"),
    acts.items.length
      ? table("Acts, newest first", columns, acts.items)
      : h.p({ class: "empty" }, "Nothing was done yet."),
    acts.next && h.button({ type: "button", onclick: () => saveActs(dataset.name) }, "All acts as a file"),
  );
}

/** @type {Record<string, (detail: any, sign: string) => string>} */
const ACTS = {
  rows: (detail) =>
    `${count(detail.rows ?? 0)} rows added to ${detail.table}, ${count(detail.individuals ?? 0)} new people`,
  limit: (detail, sign) => `limit lowered to ${sign}${number(Number(detail.limit_rho))}`,
  pause: () => "paused",
  resume: () => "pause ended",
  erase: () => "an individual was erased",
  erasure_request: () => "asks to be erased",
  epoch: (detail) => `epoch ${detail.epoch} begun`,
  reconcile: (detail) => `reconciled: ${detail.why ?? ""}`,
  correct: (detail) => `record corrected: ${(detail.columns ?? []).join(", ")}`,
  extend: (detail) => `extended to version ${detail.version}, capacity ${count(detail.capacity)}`,
  archive: (detail) => `archived, rows ${detail.rows === "keep" ? "kept" : "deleted"}`,
  amend: (detail) => `ledger amended up to sequence ${detail.to}`,
  prune: (detail) => `ledger pruned up to sequence ${detail.seq}`,
};

async function saveActs(/** @type {string} */ dataset) {
  const acts = await all(path("datasets", dataset, "acts"));
  const rows = acts.map((act) => [
    act.number,
    act.at,
    act.act,
    act.individual,
    act.sequence,
    JSON.stringify(act.detail),
  ]);
  const columns = ["number", "at", "act", "individual", "sequence", "detail"];
  download(`${dataset}-acts.csv`, "text/csv", csv(columns, rows));
}

function tableCard(dataset, /** @type {string} */ name) {
  const { kind, key, columns, rows_per_individual: most, rows_capacity: capacity } = dataset.tables[name];
  const rows = dataset.rows[name];
  const isPeople = kind === "individuals";
  const room = isPeople ? `, room for ${count(dataset.capacity)}` : "";
  const used = !isPeople && capacity ? `, room for ${count(capacity)} (${percent(rows / capacity)} used)` : "";
  return h.div(
    { class: "card" },
    h.h2(name),
    h.p(
      isPeople
        ? `One row for each individual, known by ${key}.`
        : `Events of individuals, known by ${key}; at most ${count(most)} for each.`,
    ),
    h.p({ class: "soft" }, `${count(rows)} rows${room}${used}.`),
    h.ul(Object.entries(columns).map(([column, told]) => h.li(h.code(column), ": ", columnWords(told)))),
  );
}

function uploading(dataset, /** @type {() => void} */ again) {
  const bar = h.progress({ max: "1", value: 0, hidden: true, "aria-label": "Share of the file that has been sent" });
  const told = h.div({ "aria-live": "polite" });
  const columns = columnNotes(dataset);
  const button = h.button({ type: "submit", class: "main" }, "Upload");
  const accept = [...TYPES.keys(), "gz"].map((ending) => `.${ending}`).join();
  let key = crypto.randomUUID();
  const renew = () => {
    key = crypto.randomUUID();
    fill(told);
  };
  const file = h.input({ type: "file", name: "file", required: true, accept, onchange: renew });
  const node = h.form(
    { onsubmit: send, onchange: columns.look },
    uploadFields(dataset, file),
    columns.shown,
    bar,
    h.div({ class: "row" }, button),
    told,
  );
  async function send(/** @type {Event} */ event) {
    event.preventDefault();
    const data = new FormData(node);
    const dry = data.has("dry");
    button.disabled = true;
    bar.hidden = false;
    try {
      const report = await sent(dataset, data, key, (share) => {
        bar.value = share;
      });
      if (!dry) renew();
      fill(told, reportOf(report, dry, again));
    } catch (error) {
      fill(told, problem(error), grouped(error));
    } finally {
      button.disabled = false;
      bar.hidden = true;
    }
  }
  return h.section(
    h.h2("Upload"),
    h.p({ class: "soft" }, "CSV with a header, NDJSON, Parquet or an Arrow stream. All rows are taken, or none."),
    node,
  );
}

/** A place that says under which names the columns of a form's file will be sent. */
function columnNotes(dataset) {
  const shown = h.div({ "aria-live": "polite" });
  let looks = 0;
  async function look(/** @type {Event} */ event) {
    looks += 1;
    const own = looks;
    const { notes } = await prepared(dataset, new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)));
    if (own !== looks) return; // another file since
    fill(shown, notes.length > 0 && h.div({ class: "note" }, h.ul(notes.map((each) => h.li(each)))));
  }
  return { shown, look };
}

/** @type {[string, string][]} */
const UNKNOWN = [
  ["", "what the table declares"],
  ["drop", "leave them out, and count them"],
];
/** @type {[string, string][]} */
const OVER = [
  ["", "refuse the upload"],
  ["truncate", "keep as many as fit, and count the others"],
];
/** @type {[string, string][]} */
const REPEATED = [
  ["", "keep and count them"],
  ["drop", "drop and count them"],
  ["reject", "refuse the upload"],
];

function uploadFields(dataset, /** @type {HTMLInputElement} */ file) {
  const names = Object.keys(dataset.tables);
  const ofEvents = h.div(
    { class: "fields" },
    field("Rows of unknown individuals", select("unknown_individuals", UNKNOWN, "")),
    field("Rows beyond an individual's limit", select("rows_over_limit", OVER, "")),
    field("Rows that are there already in the file", select("duplicates", REPEATED, "")),
  );
  const table = select("table", names, individualsOf(dataset), { onchange: fit });
  function fit() {
    ofEvents.hidden = dataset.tables[table.value].kind !== "events";
  }
  fit();
  return [
    h.div(
      { class: "fields" },
      field("Table", table),
      field("File", file),
      field("Fields of CSV are separated by", select("delimiter", DELIMITERS, "")),
    ),
    ofEvents,
    h.details(
      h.summary("Columns that are not as declared"),
      field("Columns to store though many of their values are not as declared", h.input({ name: "accept" }), ACCEPT),
    ),
    check("Only check it; store nothing", { name: "dry" }),
  ];
}

const ACCEPT =
  "Names with commas between them. Where more than a twentieth of a column is outside its bounds or no declared" +
  " category, the file is refused otherwise.";
const OPTIONS_OF_EVENTS = ["unknown_individuals", "rows_over_limit", "duplicates"];

/** The media type of a file, by its ending; none of one that is not known. */
function typeOf(/** @type {File} */ { name }) {
  const ending = name.toLowerCase().replace(/\.gz$/, "").split(".").at(-1) ?? "";
  return { ending, type: TYPES.get(ending), isPacked: name.toLowerCase().endsWith(".gz") };
}

const TABLES = new Set([TYPES.get("parquet"), TYPES.get("arrow")]);

/** What is sent of the file of a form, its columns under the names that the table has where they can be looked at. */
async function prepared(dataset, /** @type {FormData} */ data) {
  const file = /** @type {File} */ (data.get("file"));
  const { type, isPacked } = typeOf(file);
  const delimiter = type === "text/csv" ? String(data.get("delimiter")) : "";
  const { key, columns } = dataset.tables[String(data.get("table"))];
  const declared = [key, ...Object.keys(columns)];
  if (type === "text/csv" && !isPacked) return csvAsDeclared(file, delimiter, declared);
  if (type && TABLES.has(type) && !isPacked) return tableAsDeclared(file, type, declared);
  return { content: async () => file, mark: delimiter, columns: "", notes: [] };
}

/**
 * Send the file of a form.
 * @param {any} dataset
 * @param {FormData} data
 * @param {string} key that lets it be stored once
 * @param {(share: number) => void} progress
 */
async function sent(dataset, data, key, progress) {
  const { ending, type, isPacked } = typeOf(/** @type {File} */ (data.get("file")));
  if (!type) {
    throw new Problem({
      title: `A file that ends in .${ending} is not known here; use .csv, .ndjson, .parquet or .arrow.`,
    });
  }
  const table = String(data.get("table"));
  const { content, mark, columns } = await prepared(dataset, data);
  const options = dataset.tables[table].kind === "events" ? OPTIONS_OF_EVENTS : [];
  const address = withQuery(path("datasets", dataset.name, "tables", table, "rows"), {
    dry_run: data.has("dry") ? "true" : "",
    delimiter: mark,
    columns,
    accept: String(data.get("accept")).replaceAll(" ", ""),
    ...Object.fromEntries(options.map((option) => [option, String(data.get(option))])),
  });
  const headers = { "Content-Type": type, "Idempotency-Key": key, ...(isPacked && { "Content-Encoding": "gzip" }) };
  return upload(address, await content(), headers, progress);
}

function reportOf(report, /** @type {boolean} */ dry, /** @type {() => void} */ again) {
  const lines = [
    ...counted(report.clipped, "moved to the nearer bound"),
    ...counted(report.out_of_domain, "outside the declared categories, counted nowhere"),
    ...counted(report.nulls, "empty"),
  ];
  const left = [
    [report.rows_unknown, "of individuals that are not in the dataset: left out"],
    [report.rows_dropped, droppedWords(report)],
    [report.rows_repeated, "with the key and the values of an earlier row"],
  ];
  lines.push(...left.filter(([rows]) => rows).map(([rows, words]) => `${times(rows, "row")} ${words}`));
  const stored = dry ? "would be stored" : "are stored";
  return h.div(
    { class: "note" },
    h.strong(`${count(report.rows)} rows ${stored}, with ${count(report.individuals)} new people.`),
    report.warnings.map((each) => h.p(each)),
    lines.length ? h.ul(lines.map((line) => h.li(line))) : h.p("Every value is within its declared domain."),
    !dry && h.button({ type: "button", onclick: again }, "Show the tables again"),
  );
}

const droppedWords = (report) =>
  `beyond the limit of an individual: left out, of ${times(report.individuals_dropped_from, "person", "people")},` +
  ` of one of them ${percent(report.largest_share_dropped)} of all rows`;

const counted = (/** @type {Record<string, number>} */ by, /** @type {string} */ words) =>
  Object.entries(by)
    .filter(([, n]) => n)
    .map(([column, n]) => `${column}: ${count(n)} ${words}`);

function grouped(/** @type {unknown} */ error) {
  const rows = error instanceof Problem && error.told.rows;
  if (!rows) return null;
  const { wrong, is_complete: isComplete, groups, over_limit: overLimit } = rows;
  const columns = [
    { title: "Column", cell: (each) => each.column },
    { title: "What is wrong", class: "words", cell: (each) => each.message },
    { title: "Rows", number: true, cell: (each) => count(each.rows) },
    { title: "First rows", cell: (each) => each.first_rows.join(", ") },
  ];
  return [
    h.p(`${isComplete ? "" : "At least "}${count(wrong)} rows are wrong. Nothing is stored.`),
    groups.length > 0 && table("Errors by kind", columns, groups),
    overLimit && h.pre(JSON.stringify(overLimit, null, 2)),
  ];
}
