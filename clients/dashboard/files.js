// A file that a person chose: its type by its ending, and the columns of CSV under the names that a schema takes.

import { Problem, path, upload } from "./api.js";
import { readCsv } from "./format.js";

/** By the ending of a file's name. */
export const TYPES = new Map([
  ["csv", "text/csv"],
  ["tsv", "text/csv"],
  ["txt", "text/csv"],
  ["ndjson", "application/x-ndjson"],
  ["jsonl", "application/x-ndjson"],
  ["parquet", "application/vnd.apache.parquet"],
  ["arrow", "application/vnd.apache.arrow.stream"],
  ["arrows", "application/vnd.apache.arrow.stream"],
]);
const MARKS = [",", ";", "\t", "|"];
const NAME_CHARACTERS_MAX = 63;
const HEADER_BYTES_MAX = 2 ** 20;

/** The mark between the fields of a header: the one that it has most of. */
export function markOf(/** @type {string} */ header) {
  const counts = MARKS.map((mark) => header.split(mark).length);
  return MARKS[counts.indexOf(Math.max(...counts))];
}

/** A name that a schema takes: lower case, without accents, its words joined by underscores. */
export function plainName(/** @type {string} */ name) {
  const ascii = [...name.normalize("NFKD")].filter((sign) => sign <= "\x7f").join("");
  const lower = ascii.replace(/([a-z0-9])(?=[A-Z])/g, "$1_").toLowerCase();
  const words = lower.replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "");
  return (/^[a-z]/.test(words) ? words : `c_${words}`.replace(/_+$/, "")).slice(0, NAME_CHARACTERS_MAX);
}

/** Names that a schema takes, each once; `select` is the word of labels. */
export function namesOf(/** @type {string[]} */ header) {
  const taken = new Set(["select"]);
  return header.map((each) => {
    const plain = plainName(each);
    let name = plain;
    for (let number = 2; taken.has(name); number++) {
      name = `${plain.slice(0, NAME_CHARACTERS_MAX - `_${number}`.length)}_${number}`;
    }
    taken.add(name);
    return name;
  });
}

/** What is said of a column that has another name in the schema. */
export const renamedWords = (/** @type {string} */ name, /** @type {string} */ here) =>
  `“${name}” of the file is ${here} here.`;

/**
 * A file with its columns as a registration of it has named them; those that the table does not have are left out.
 * @typedef {object} Prepared
 * @property {() => Promise<Blob>} content
 * @property {string} mark the mark between the fields of CSV
 * @property {string} columns the names as the service is to read them, in JSON; empty where they are as declared
 * @property {string[]} notes
 */

/**
 * CSV is written anew here, so that nothing is sent of a column that is left out.
 * @param {File} file
 * @param {string} delimiter the mark between fields; empty for that of the header
 * @param {string[]} declared the names that the table has
 * @returns {Promise<Prepared>}
 */
export async function csvAsDeclared(file, delimiter, declared) {
  const head = headerIn(await file.slice(0, HEADER_BYTES_MAX).text());
  const mark = delimiter || markOf(head);
  const [header = []] = readCsv(head, mark);
  const { names, notes } = namesAsDeclared(header, declared);
  const content = async () => (notes.length ? rewritten(await textOf(file), mark, names) : file);
  return { content, mark, columns: "", notes };
}

/** @type {WeakMap<File, Promise<any>>} */
const previews = new WeakMap();

/** The first rows of Parquet and Arrow, for which a browser has no reader: the service reads them and keeps nothing. */
export function previewOf(/** @type {File} */ file, /** @type {string} */ type) {
  const known = previews.get(file) ?? upload(path("files", "preview"), file, { "Content-Type": type }, () => {});
  previews.set(file, known);
  return known;
}

/**
 * Parquet and Arrow are sent as they are, and the service reads their columns under other names.
 * @param {File} file
 * @param {string} type
 * @param {string[]} declared
 * @returns {Promise<Prepared>}
 */
export async function tableAsDeclared(file, type, declared) {
  const found = await previewOf(file, type);
  const [header = []] = readCsv(found.csv);
  const all = [...header, ...Object.keys(found.left_out)];
  const { names, notes } = namesAsDeclared(all, declared);
  const columns = Object.fromEntries(all.flatMap((each, at) => (names[at] === each ? [] : [[each, names[at]]])));
  return { content: async () => file, mark: "", columns: notes.length ? JSON.stringify(columns) : "", notes };
}

/** The column of the table that each column of a file is, null for none, and what is said of those with other names. */
function namesAsDeclared(/** @type {string[]} */ header, /** @type {string[]} */ declared) {
  const plain = namesOf(header);
  const all = header.map((each, at) => (declared.includes(each) ? each : plain[at]));
  const names = all.map((each, at) => (declared.includes(each) && all.indexOf(each) === at ? each : null));
  const notes = header.flatMap((each, at) => {
    const name = names[at];
    if (name === null) return [`“${each}” is left out: the table has no such column.`];
    return each === name ? [] : [renamedWords(each, name)];
  });
  return names.some(Boolean) ? { names, notes } : { names: header, notes: [] }; // the service says what is wrong
}

/** The first record of a text: a quotation may go over the end of a line. */
function headerIn(/** @type {string} */ text) {
  const [header = ""] = /^(?:[^"\r\n]+|"[^"]*")*/.exec(text) ?? [];
  return header;
}

/** The whole text. What is not UTF-8 is refused: a sign in the place of what it has would be stored. */
async function textOf(/** @type {File} */ file) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Problem({ title: `${file.name} is not in UTF-8.`, detail: "Nothing was sent." });
  }
}

/** The rows with the columns that are kept; a row of another length keeps its fields, so that the service names it. */
function rewritten(/** @type {string} */ text, /** @type {string} */ mark, /** @type {(string | null)[]} */ names) {
  const [header, ...rows] = readCsv(text, mark);
  const fits = (/** @type {string[]} */ row) => row.length === header.length;
  const chosen = (/** @type {string[]} */ row) => (fits(row) ? row.filter((_, at) => names[at] !== null) : row);
  const quoted = (/** @type {string} */ field) =>
    /["\r\n]/.test(field) || field.includes(mark) ? `"${field.replaceAll('"', '""')}"` : field;
  const lines = [names.filter((each) => each !== null), ...rows.map(chosen)];
  return new Blob(
    lines.map((row) => `${row.map(quoted).join(mark)}\n`),
    { type: "text/csv" },
  );
}
