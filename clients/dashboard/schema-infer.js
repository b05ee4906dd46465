// A proposal for the schema of a file, as the client's `infer_schema` makes it, for the form of a registration. CSV is
// read in the browser, and nothing of it is sent. A browser has no reader for Parquet and Arrow: the service gives the
// first rows as CSV, and keeps nothing. A domain that is read off a file is marked until it is confirmed.

import { Problem } from "./api.js";
import { entriesOf } from "./columns.js";
import { markOf, namesOf, plainName, previewOf, renamedWords, TYPES } from "./files.js";
import { readCsv, times } from "./format.js";

const PEOPLE_WORDS = (
  "person individual customer patient user subject member client participant respondent employee student guest" +
  " visitor subscriber applicant citizen resident"
).split(" ");
const KEY_WORDS = ["id", "key", "no", "number", "code"];
const CANDIDATES_MAX = 5;
const CATEGORIES_MAX = 1000;
const BYTES_MAX = 2 ** 22;
const INTEGER = /^-?[0-9]{1,18}$/;
const PADDED = /^-?0[0-9]+$/;
const LONG = /^-?[0-9]{1,100}$/;
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
const DATE = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/;
const TIME = /^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}/;
const ZONE = /(Z|[+-][0-9]{2}:?[0-9]{2})$/;

/**
 * @typedef {import("./schema-form.js").Edited} Edited
 *
 * @typedef {object} Seen what is seen of a file
 * @property {string[]} header
 * @property {string[][]} rows
 * @property {Set<string>} texts the columns that hold text, though it may look like numbers
 * @property {string[]} notes
 */

/**
 * The table that fits a file, as the form has it, and what a person should know about it.
 * @param {File} file
 * @returns {Promise<{ table: Edited, notes: string[] }>}
 */
export async function proposalOf(file) {
  const ending = file.name.toLowerCase().split(".").at(-1) ?? "";
  const isText = ["csv", "tsv", "txt"].includes(ending);
  if (!isText && !["parquet", "arrow", "arrows"].includes(ending)) {
    throw new Problem({ title: "This page reads CSV, Parquet and Arrow streams, by the ending of the file's name." });
  }
  const seen = await (isText ? read(file) : previewed(file, TYPES.get(ending) ?? ""));
  if (!seen.rows.length) throw new Problem({ title: "There is no row in this file." });
  const { table, notes } = tableOf(seen, plainName(file.name.split(".")[0]));
  return { table, notes: [...seen.notes, ...notes] };
}

/** The first rows, from the service. @returns {Promise<Seen>} */
async function previewed(/** @type {File} */ file, /** @type {string} */ type) {
  const found = await previewOf(file, type);
  const [header = [], ...rows] = readCsv(found.csv);
  /** @type {[string, string][]} */
  const leftOut = Object.entries(found.left_out);
  const notes = leftOut.map(([name, reason]) => `“${name}” is left out: ${reason}.`);
  if (!found.is_whole) notes.unshift(`The beginning of the file was read, ${times(found.rows, "row")} of it.`);
  return { header, rows, texts: new Set(found.text_columns), notes };
}

/** The first rows, read here. @returns {Promise<Seen>} */
async function read(/** @type {File} */ file) {
  const isCut = file.size > BYTES_MAX;
  const head = await file.slice(0, BYTES_MAX).text();
  const text = isCut ? head.slice(0, head.lastIndexOf("\n") + 1) : head;
  const [first] = text.split("\n", 1);
  const [header = [], ...all] = readCsv(text, markOf(first));
  const rows = all.filter((row) => row.length === header.length);
  const notes = isCut ? ["The beginning of the file was read, 4 MiB of it."] : [];
  return { header, rows, texts: new Set(), notes };
}

function tableOf(/** @type {Seen} */ { header, rows, texts }, /** @type {string} */ name) {
  const names = namesOf(header);
  const counts = header.map((_, at) => countsOf(rows.map((row) => row[at])));
  const likely = header.map((_, at) => at).sort((a, b) => likelihoodOf(header[b]) - likelihoodOf(header[a]));
  const [key] = likely;
  const candidates = likely.filter((at) => at === key || mayBeKey(counts[at], rows.length)).slice(0, CANDIDATES_MAX);
  const listed = candidates.map((at) => `${names[at]} (${counts[at].size} in ${times(rows.length, "row")})`);
  const notes = header.flatMap((each, at) => (each === names[at] ? [] : [renamedWords(each, names[at])]));
  notes.unshift(`The key is a guess among ${listed.join(", ")}.`);
  const columns = [];
  for (const [at, each] of header.entries()) {
    const column = at === key ? null : columnOf(counts[at], texts.has(each));
    if (typeof column === "string") notes.push(`“${each}” is left out: ${column}.`);
    else if (column) columns.push({ name: names[at], ...column });
  }
  const most = Math.max(1, ...counts[key].values());
  if (most === 1) return { table: { name, kind: "individuals", key: names[key], isProposed: true, columns }, notes };
  const bound = 2 ** Math.ceil(Math.log2(most));
  const events = { unknown_individuals: "reject", rows_per_individual: bound, isProposed: true };
  return { table: { name, kind: "events", key: names[key], ...events, columns }, notes };
}

/** A rank by the words of a name: those of people before those of anything else, as of `infer_schema`. */
function likelihoodOf(/** @type {string} */ name) {
  const words = plainName(name).split("_");
  const last = words.at(-1) ?? "";
  const stem = last.endsWith("id") ? last.slice(0, -2) : last;
  const isOfPeople = [...words.slice(0, -1), stem].some((each) => PEOPLE_WORDS.includes(each));
  if (isOfPeople && (KEY_WORDS.includes(last) || PEOPLE_WORDS.includes(stem))) return 3;
  if (!KEY_WORDS.includes(last)) return 0;
  return words.length > 1 ? 1 : 2;
}

/** Whether each row has a text or a whole number. */
function mayBeKey(/** @type {Map<string, number>} */ counts, /** @type {number} */ rows) {
  const filled = [...counts.values()].reduce((a, b) => a + b, 0);
  return filled === rows && [...counts.keys()].every((each) => INTEGER.test(each) || !plainColumnOf([each]));
}

/** Each value with how often it is there; an empty field is no value. */
function countsOf(/** @type {string[]} */ values) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const value of values) if (value !== "") counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** The declaration that fits the values, or why none does. */
function columnOf(/** @type {Map<string, number>} */ counts, /** @type {boolean} */ isText) {
  const values = [...counts.keys()];
  if (!values.length) return "it holds no value";
  if (!isText && values.every((each) => LONG.test(each)) && values.some((each) => Math.abs(Number(each)) >= 2 ** 53))
    return "it holds whole numbers beyond 2^53: number them and declare a size, or make categories of them";
  const column = isText ? null : plainColumnOf(values);
  if (column) return column;
  if (values.some((each) => UNSEEN.test(each) || !each.trim()))
    return "it holds texts with characters that cannot be seen, which no category has";
  if (values.length > CATEGORIES_MAX)
    return `it holds ${values.length} different texts: number them and declare a size`;
  return { type: "category", categories: written(values.sort()), isProposed: true };
}

/** The declaration of values that are no text; null where there is none. */
function plainColumnOf(/** @type {string[]} */ values) {
  if (values.every((each) => ["true", "false"].includes(each.toLowerCase()))) return { type: "boolean" };
  const years = values.map(yearOf);
  if (!years.includes(null)) return timesOf(values, /** @type {number[]} */ (years));
  const areNumbers = values.every((each) => NUMBER.test(each)) && !values.some((each) => PADDED.test(each));
  return areNumbers ? numbersOf(values) : null;
}

/** The year of a date or a time in UTC; null for other text. */
function yearOf(/** @type {string} */ text) {
  const isDate = DATE.test(text);
  if (!isDate && !TIME.test(text)) return null;
  const at = new Date(isDate || ZONE.test(text) ? text.replace(" ", "T") : `${text.replace(" ", "T")}Z`);
  if (Number.isNaN(at.getTime()) || (isDate && at.toISOString().slice(0, 10) !== text)) return null;
  return at.getUTCFullYear();
}

/** Bounds in whole years. */
function timesOf(/** @type {string[]} */ values, /** @type {number[]} */ years) {
  const [first, last] = [years.reduce((a, b) => Math.min(a, b)), years.reduce((a, b) => Math.max(a, b))];
  const [lower, upper] = [first, last].map((year) => String(year).padStart(4, "0"));
  return values.every((each) => DATE.test(each))
    ? { type: "date", lower: `${lower}-01-01`, upper: `${upper}-12-31`, isProposed: true }
    : { type: "datetime", lower: `${lower}-01-01T00:00:00Z`, upper: `${upper}-12-31T23:59:59Z`, isProposed: true };
}

function numbersOf(/** @type {string[]} */ values) {
  const numbers = values.map(Number);
  const lower = rounded(numbers.reduce((a, b) => Math.min(a, b), 0));
  const upper = rounded(numbers.reduce((a, b) => Math.max(a, b), 0));
  if (values.every((each) => INTEGER.test(each))) return { type: "integer", lower, upper, isProposed: true };
  return { type: "real", lower, upper: upper > lower ? upper : lower + 1, isProposed: true };
}

/** The nearest of 1, 2 and 5 times a power of ten that is as far from zero or farther. */
function rounded(/** @type {number} */ bound) {
  if (bound === 0 || !Number.isFinite(bound)) return 0;
  const size = Math.abs(bound);
  const power = 10 ** Math.floor(Math.log10(size));
  const step = [1, 2, 5, 10, 20].find((each) => each * power >= size) ?? 20;
  return Math.sign(bound) * step * power;
}

/** Categories as the form takes them: one a line where that says the same, or as a JSON list. */
function written(/** @type {string[]} */ categories) {
  const lines = categories.join("\n");
  return JSON.stringify(entriesOf(lines)) === JSON.stringify(categories) ? lines : JSON.stringify(categories);
}
