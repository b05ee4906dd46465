// A file that a person chose: its type by its ending, and the columns of CSV under the names that a schema takes.

import { Problem } from "./api.js";
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
 * CSV with its columns as a registration of it has named them; those that the table does not have are left out.
 * @param {File} file
 * @param {string} delimiter the mark between fields; empty for that of the header
 * @param {string[]} declared the names that the table has
 * @returns {Promise<{ content: () => Promise<Blob>, mark: string, notes: string[] }>}
 */
export async function asDeclared(file, delimiter, declared) {
  const head = headerIn(await file.slice(0, HEADER_BYTES_MAX).text());
  const mark = delimiter || markOf(head);
  const [header = []] = readCsv(head, mark);
  const plain = namesOf(header);
  const names = header.map((each, at) => (declared.includes(each) ? each : plain[at]));
  const kept = names.map((each, at) => declared.includes(each) && names.indexOf(each) === at);
  const notes = header.flatMap((each, at) => {
    if (!kept[at]) return [`“${each}” is left out: the table has no such column.`];
    return each === names[at] ? [] : [renamedWords(each, names[at])];
  });
  const isAsItIs = !notes.length || !kept.includes(true); // the service says what is wrong with none of its columns
  const content = async () => (isAsItIs ? file : rewritten(await textOf(file), { mark, names, kept }));
  return { content, mark, notes: isAsItIs ? [] : notes };
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
function rewritten(
  /** @type {string} */ text,
  /** @type {{ mark: string, names: string[], kept: boolean[] }} */ { mark, names, kept },
) {
  const [header, ...rows] = readCsv(text, mark);
  const fits = (/** @type {string[]} */ row) => row.length === header.length;
  const chosen = (/** @type {string[]} */ row) => (fits(row) ? row.filter((_, at) => kept[at]) : row);
  const quoted = (/** @type {string} */ field) =>
    /["\r\n]/.test(field) || field.includes(mark) ? `"${field.replaceAll('"', '""')}"` : field;
  const lines = [names, ...rows].map((row) => `${chosen(row).map(quoted).join(mark)}\n`);
  return new Blob(lines, { type: "text/csv" });
}
