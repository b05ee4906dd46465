// Elements from data: text is always text, so that no value can become markup.

/**
 * @typedef {Node | string | number | false | null | undefined} Child what is null, undefined or false is left out
 * @typedef {Child | Part[]} Part
 * @typedef {Record<string, any>} Attributes values, listeners (`onclick`), and true for what has no value
 */

/**
 * Makers of elements by name: `h.p({ class: "soft" }, "text", other)`. Attributes come first, and may be left out.
 * @type {{ [Tag in keyof HTMLElementTagNameMap]: (...parts: (Part | Attributes)[]) => HTMLElementTagNameMap[Tag] }}
 */
export const h = new Proxy(/** @type {any} */ ({}), {
  get:
    (_, tag) =>
    (/** @type {any[]} */ ...parts) => {
      const node = document.createElement(String(tag));
      if (isAttributes(parts[0])) setAttributes(node, parts.shift());
      add(node, parts);
      return node;
    },
});

const isAttributes = (/** @type {any} */ part) => Object.getPrototypeOf(part ?? "") === Object.prototype;

function setAttributes(/** @type {any} */ node, /** @type {Attributes} */ attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
}

/**
 * The children of a node, replaced.
 * @template {Element} N
 * @param {N} node
 * @param {...Part} children
 */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

function add(/** @type {Element} */ node, /** @type {any[]} */ children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : inOrder(String(child)));
  }
}

const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text whose characters stand in the order in which it has them: marks that would turn what follows are shown. */
export const inOrder = (/** @type {string} */ text) => text.replace(DIRECTIONS, "\ufffd");

/**
 * @template Row
 * @typedef {{ title: string, cell: (row: Row) => Part, number?: boolean, class?: string }} Column
 */

const NARROW_MAX = 3; // columns that fit beside each other on a phone

/**
 * A table with a caption for those who hear it. On a phone a row of many columns becomes a list of titles and cells;
 * the roles say that it still is a row.
 * @template Row
 * @param {string} caption
 * @param {Column<Row>[]} columns
 * @param {readonly Row[]} rows
 */
export function table(caption, columns, rows) {
  const styled = (/** @type {Column<Row>} */ each) => each.class ?? (each.number && "number");
  const head = columns.map((each) => h.th({ role: "columnheader", scope: "col", class: styled(each) }, each.title));
  const cell = (/** @type {Column<Row>} */ each, /** @type {Row} */ row) =>
    h.td({ role: "cell", class: styled(each), "data-title": each.title }, h.div(each.cell(row)));
  const listed = rows.map((row) =>
    h.tr(
      { role: "row" },
      columns.map((each) => cell(each, row)),
    ),
  );
  return h.div(
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h.table(
      { role: "table", class: columns.length > NARROW_MAX && "many" },
      h.caption({ class: "visually-hidden" }, caption),
      h.thead({ role: "rowgroup" }, h.tr({ role: "row" }, head)),
      h.tbody({ role: "rowgroup" }, listed),
    ),
  );
}

let fieldsMade = 0;

/**
 * A labelled control, and a hint that describes it.
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  fieldsMade += 1;
  control.id ||= `field-${fieldsMade}`;
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  const told = hint && h.span({ class: "small", id: `${control.id}-hint` }, hint);
  return h.div({ class: "field" }, h.label({ for: control.id }, label), control, told);
}

/** A box to tick, with its words. */
export const check = (/** @type {Part} */ words, /** @type {Attributes} */ attributes) =>
  h.label({ class: "check" }, h.input({ type: "checkbox", ...attributes }), words);

/**
 * A select of texts, or of pairs of value and text.
 * @param {string} name
 * @param {(string | [string, string])[]} options
 * @param {string} value the chosen one
 * @param {Attributes} [attributes]
 */
export function select(name, options, value, attributes = {}) {
  const pairs = options.map((each) => (typeof each === "string" ? [each, each] : each));
  const listed = pairs.map(([key, text]) => h.option({ value: key, selected: key === value }, text));
  return h.select({ name, ...attributes }, listed);
}

/**
 * Save a text or bytes as a file.
 * @param {string} name
 * @param {string} type
 * @param {BlobPart} content
 */
export function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  h.a({ href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/**
 * Call `task` once a burst of calls has ended.
 * @template {any[]} Given
 * @param {(...given: Given) => unknown} task
 */
export function calmly(task, waitMs = 300) {
  let timer = 0;
  return (/** @type {Given} */ ...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => task(...given), waitMs);
  };
}
