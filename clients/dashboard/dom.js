// Elements from data: text is always text, so that no value can become markup.

/** An element with attributes, listeners (`onclick`) and children; null and false children are left out. */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

/** The children of a node, replaced. */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
}

/** A table: `columns` are {title, cell, number}, `cell` makes a node or text of a row. */
export function table(caption, columns, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((each) => h("th", { scope: "col", class: each.number && "number" }, each.title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((each) => h("td", { class: each.class ?? (each.number && "number") }, each.cell(row))))))));
}

let fields_made = 0;

/** A labelled control, and a hint that describes it. */
export function field(label, control, hint) {
  fields_made += 1;
  control.id ||= `field-${fields_made}`;
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, hint && h("span", { class: "small", id: `${control.id}-hint` }, hint));
}

/** Options of a select. */
export function select(name, options, value, attributes = {}) {
  return h("select", { name, ...attributes, value },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
}

/** Save bytes as a file. */
export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Call `task` once a burst of calls has ended. */
export function calmly(task, wait_ms = 300) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => task(...given), wait_ms);
  };
}
