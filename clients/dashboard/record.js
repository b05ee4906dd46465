// The rows that a dataset holds about one individual, as tables.

import { h, table } from "./dom.js";
import { count } from "./format.js";
import { valueWords } from "./values.js";

const ROWS_SHOWN = 100;

/**
 * The rows of one table, the first of them.
 * @param {string} caption
 * @param {{ count: number, rows: any[] }} held
 */
export function rowsPart(caption, { count: held, rows }) {
  if (!held) return h.p({ class: "soft" }, "Nothing.");
  const columns = Object.keys(rows[0]).map((title) => ({ title, cell: (row) => valueWords(row[title]) }));
  return [
    table(caption, columns, rows.slice(0, ROWS_SHOWN)),
    held > ROWS_SHOWN && h.p({ class: "soft small" }, `${count(held)} rows in all; the first ${ROWS_SHOWN} are shown.`),
  ];
}
