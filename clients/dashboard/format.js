// Numbers and times for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const figures = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

export const count = (value) => whole.format(value);
export const number = (value) =>
  Math.abs(value) >= 10000 || Number.isInteger(value) ? whole.format(value) : figures.format(value);

/** A number in two figures, as a half width is told. */
export const rounded = (/** @type {number} */ value) => measured(value, value);

/** A number with no digit that is finer than the second figure of its half width. */
export function measured(/** @type {number} */ value, /** @type {number} */ width) {
  if (!(width > 0)) return number(value);
  const power = Math.floor(Math.log10(width)) - 1;
  if (power > 0) return whole.format(Math.round(value / 10 ** power) * 10 ** power || 0); // no minus before a zero
  const digits = Math.min(-power, 20);
  return new Intl.NumberFormat("en", { maximumFractionDigits: digits }).format(Number(value.toFixed(digits)) || 0);
}

/** A share of a budget: a percentage, and above the whole of it so many times. */
export const portion = (/** @type {number} */ share) =>
  share > 1 ? `${number(share < 10 ? Number(share.toFixed(1)) : Math.round(share))} times` : percent(share);

/** A share as a percentage: 0.4 % and 99.8 %, but 17 %. */
export function percent(share) {
  const value = 100 * share;
  if (value === 0 || value === 100) return `${value} %`;
  const digits = value < 0.1 ? 3 : value < 1 ? 2 : value < 10 || value > 99 ? 1 : 0;
  const text = value.toFixed(digits);
  if (Number(text) === 0) return "< 0.001 %";
  return `${Number(text) === 100 && value < 100 ? "99.99" : Number(text)} %`;
}

/** A small number such as δ: 1e-6, not 0.000001. */
export const small = (text) =>
  Number(text) > 0 && Number(text) < 1e-3 ? Number(text).toExponential() : String(Number(text));

/** ρ in few figures. */
export const rho = (text) =>
  text === null || text === undefined
    ? "no limit"
    : Number(text) === 0
      ? "0"
      : Number(text)
          .toPrecision(3)
          .replace(/\.?0+$/, "");

/** `1 person`, `2 people`. */
export const people = (value) => (value === 1 ? "1 person" : `${count(value)} people`);
export const times = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** The time of an instant of today, the day and the time of an earlier one. */
export function instant(text) {
  const at = new Date(text);
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
}
export const date = (text) => day.format(new Date(text));
export const now = () => clock.format(new Date());

const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i;
const CELL_BEGINS = /(^|[;\t\r\n])(?=[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r])/g;

/**
 * Rows as CSV. A text that a spreadsheet would take for a formula begins with an apostrophe; so does one within a text,
 * behind a semicolon, a tab or the end of a line. `csv_text` of the service does the same.
 * @param {string[]} columns
 * @param {unknown[][]} rows
 */
export function csv(columns, rows) {
  const cell = (/** @type {unknown} */ value) => {
    const text = String(value ?? "");
    const safe = NUMBER.test(text) ? text : text.replaceAll(CELL_BEGINS, "$1'");
    return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\n`).join("");
}

/** The rows of a CSV text (RFC 4180), its header first; a quotation that does not end is refused. */
export function readCsv(/** @type {string} */ text, mark = ",") {
  const rows = [[""]];
  let isQuoted = false;
  let isEscaped = false; // the sign before was a quote within a quotation: its end, or the first of two
  const add = (/** @type {string} */ sign) => {
    const row = rows[rows.length - 1];
    row[row.length - 1] += sign;
  };
  for (const sign of text.replace(/^\ufeff/, "").replaceAll("\r\n", "\n")) {
    if (sign === '"') {
      if (isEscaped) add(sign);
      isEscaped = isQuoted;
      isQuoted = !isQuoted;
      continue;
    }
    isEscaped = false;
    if (isQuoted || (sign !== mark && sign !== "\n")) add(sign);
    else if (sign === mark) rows[rows.length - 1].push("");
    else rows.push([""]);
  }
  if (isQuoted) throw new Error("A quotation in the file does not end.");
  return rows.filter((row) => row.length > 1 || row[0]);
}

/** The promise of a dataset: ε and δ, ε alone where there is no δ, or ρ. */
export function guarantee(dataset) {
  const { epsilon, delta } = dataset.guarantee;
  if (epsilon === null) return `ρ = ${rho(dataset.budget_rho)}`;
  return delta === null ? `ε = ${epsilon}` : `ε = ${epsilon}, δ = ${small(delta)}`;
}

/** By which accounting that is, in a few words; nothing for Gaussian differential privacy. */
export function accounting(dataset) {
  const { kind, order, conversion } = dataset.accounting;
  if (!kind) return "";
  const names = { rdp: `by Rényi DP of order ${number(order)}`, zcdp: "by zero-concentrated DP", pure: "by pure DP" };
  const name = names[kind];
  return conversion === "simple" ? `, ${name}, simple conversion` : `, ${name}`;
}
