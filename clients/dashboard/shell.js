// What every page has: the bar, tabs, notices, the sign-out.

import { get, Problem, signOut } from "./api.js";
import { fill, h } from "./dom.js";
import { fourSentences, UNITS } from "./words.js";

const part = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @typedef {import("./dom.js").Part} Part */

export const header = part("top");
export const main = part("main");

/** The signed-in principal, or the sign-in page; a principal of another role goes to its own page. */
export async function signedIn(/** @type {string} */ role) {
  const session = await get("/v1/session");
  if (session.role !== role) {
    location.replace(`/${session.role}`);
    await new Promise(() => {});
  }
  return session;
}

/**
 * The bar: `context` stands beside the name, `status` before the account.
 * @param {{ role: string, name: string }} session
 * @param {{ context?: Part, status?: Part }} [more]
 */
export function bar(session, { context, status } = {}) {
  fill(
    header,
    h.div(
      { class: "bar" },
      h.a({ class: "brand", href: `/${session.role}` }, "Sparing"),
      context,
      h.span({ class: "spring" }),
      status,
      h.span({ class: "who" }, `${session.name} (${session.role})`),
      h.button({ type: "button", onclick: signOut }, "Sign out"),
    ),
    h.nav({ class: "tabs", id: "tabs", "aria-label": "Sections", hidden: true }),
  );
}

/** Tabs that are links: `[path, title]`. */
export function tabs(/** @type {[string, string][]} */ links, /** @type {string} */ current) {
  const nav = part("tabs");
  nav.hidden = links.length < 2;
  const listed = links.map(([href, title]) => h.a({ href, "aria-current": href === current && "page" }, title));
  fill(nav, listed);
}

/** The text of a part of the address; one that is no escaped UTF-8 as it stands. */
export function decoded(/** @type {string} */ part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What the address names after the page itself. */
export const places = () => location.pathname.split("/").slice(2).map(decoded);

/**
 * Follow links of this page without loading it again; `show` draws the address.
 * @param {string} prefix of the page's addresses
 * @param {() => unknown} show
 */
export function navigate(prefix, show) {
  const go = (/** @type {string} */ address) => {
    history.pushState(null, "", address);
    show();
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  };
  document.addEventListener("click", (event) => {
    const link = /** @type {Element} */ (event.target).closest("a");
    if (!link || leaves(link, prefix) || isSpecial(event)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
  addEventListener("popstate", show);
  return go;
}

const isSpecial = (/** @type {MouseEvent} */ event) =>
  event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey;

function leaves(/** @type {HTMLAnchorElement} */ link, /** @type {string} */ prefix) {
  const isHere = link.pathname === prefix || link.pathname.startsWith(`${prefix}/`);
  return link.origin !== location.origin || !isHere || link.hash || link.target || link.hasAttribute("download");
}

const ERRORS_SHOWN = 20;

/** A problem with everything that an operator needs, and a button that copies it. */
export function problem(/** @type {unknown} */ error) {
  if (!(error instanceof Problem)) console.error(error);
  const told = toldBy(error);
  const { title, detail, request_id: request, errors = [] } = told;
  const each = errors.map(({ field, message }) => `${field}: ${message}`);
  const text = [title, detail, told.type, request && `request ${request}`, ...each].filter(Boolean).join("\n");
  const copy = () => navigator.clipboard?.writeText(text);
  return h.div(
    { class: "note problem", role: "alert" },
    h.strong(title),
    detail && detail !== title && h.p(detail),
    errors.length > 0 &&
      detail !== each[0] &&
      h.ul(errors.slice(0, ERRORS_SHOWN).map(({ field, message }) => h.li(h.code(field), " ", message))),
    errors.length > ERRORS_SHOWN && h.p(`… and ${errors.length - ERRORS_SHOWN} more.`),
    request &&
      h.p(
        { class: "row small soft" },
        `Request ${request}`,
        h.button({ class: "plain", type: "button", onclick: copy }, "Copy"),
      ),
  );
}

/** @returns {import("./api.js").Told} */
function toldBy(/** @type {unknown} */ error) {
  if (error instanceof Problem) return error.told;
  return { title: "The page has failed.", detail: error instanceof Error ? error.message : String(error) };
}

/**
 * Draw what `task` resolves to, with a state for loading and for failure.
 * @param {Element} node
 * @param {() => Part | Promise<Part>} task
 */
export async function draw(node, task) {
  fill(node, h.p({ class: "empty", role: "status" }, "Loading …"));
  try {
    fill(node, await task());
  } catch (error) {
    fill(node, problem(error));
  }
}

/**
 * A form whose submission runs `task(data)`; what it resolves to, or a problem, is shown under it.
 * @param {Part} children
 * @param {(data: Record<string, any>) => Promise<Part | void>} task
 */
export function form(children, task, { button = "Save", main = true } = {}) {
  const told = h.div({ "aria-live": "polite" });
  const submit = h.button({ type: "submit", class: main && "main" }, button);
  const node = h.form({ onsubmit: run }, children, h.div({ class: "row" }, submit), told);
  async function run(/** @type {Event} */ event) {
    event.preventDefault();
    submit.disabled = true;
    try {
      const shown = await task(Object.fromEntries(new FormData(node)));
      fill(told, typeof shown === "string" ? h.div({ class: "note" }, shown) : (shown ?? null));
    } catch (error) {
      fill(told, problem(error));
    } finally {
      submit.disabled = false;
    }
  }
  return node;
}

/** The explanation of the numbers, the same on every page. */
export function explained(/** @type {import("./words.js").Promised} */ promised) {
  return h.details(
    { class: "explain" },
    h.summary("What does this mean?"),
    h.ul(fourSentences(promised).map((each) => h.li(each))),
    h.dl(UNITS.map(([term, meaning]) => [h.dt(h.strong(term)), h.dd(meaning)])),
  );
}

/** Numbers with their names below. */
export function facts(/** @type {([string, string] | false)[]} */ pairs) {
  return h.dl(
    { class: "facts" },
    pairs.map((pair) => pair && h.div(h.dt(pair[1]), h.dd(pair[0]))),
  );
}

/**
 * A list of which older rows can be fetched: `draw(rows, isWhole)` makes what is shown, `next(cursor)` fetches a page.
 * @template Row
 * @param {{ items: Row[], next: string | null }} first
 * @param {(cursor: string) => Promise<{ items: Row[], next: string | null }>} next
 * @param {(rows: Row[], isWhole: boolean) => Part} draw
 * @param {string} button
 */
export function pages(first, next, draw, button) {
  /** @type {Row[]} */
  const rows = [];
  const shown = h.div();
  const more = h.div();
  const show = (/** @type {typeof first} */ page) => {
    rows.push(...page.items);
    fill(shown, draw(rows, !page.next));
    fill(more, page.next && h.button({ type: "button", onclick: () => older(String(page.next)) }, button));
  };
  const older = (/** @type {string} */ cursor) =>
    next(cursor).then(show, (/** @type {unknown} */ error) => fill(more, problem(error)));
  show(first);
  return [shown, more];
}

/** A page that the browser kept shows what it showed before a sign-out: it is loaded anew. */
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

/** A failure that nothing else caught is shown, not lost. */
addEventListener("unhandledrejection", (event) => {
  main.prepend(problem(event.reason));
});
