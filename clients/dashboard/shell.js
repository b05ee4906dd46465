// What every page has: the bar, tabs, notices, the sign-out.

import { erase, get, Problem } from "./api.js";
import { fill, h } from "./dom.js";
import { fourSentences, UNITS } from "./words.js";

const part = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

export const header = part("top");
export const main = part("main");

/** The signed-in principal, or the sign-in page; a principal of another role goes to its own page. */
export async function signedIn(role) {
  const session = await get("/v1/session");
  if (session.role !== role) {
    location.replace(`/${session.role}`);
    await new Promise(() => {});
  }
  return session;
}

/** The bar: `context` stands beside the name, `status` before the account. */
export function bar(session, { context = [], status = [] } = {}) {
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

async function signOut() {
  await erase("/v1/session");
  location.assign("/sign-in");
}

/** Tabs that are links: `[path, title]`. */
export function tabs(links, current) {
  const nav = part("tabs");
  nav.hidden = links.length < 2;
  fill(
    nav,
    links.map(([href, title]) => h.a({ href, "aria-current": href === current && "page" }, title)),
  );
}

/** Follow links of this page without loading it again; `show` draws the address. */
export function navigate(prefix, show) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (
      !link ||
      event.defaultPrevented ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      link.target ||
      link.hasAttribute("download")
    )
      return;
    const url = new URL(link.href);
    if (
      url.origin !== location.origin ||
      !(url.pathname === prefix || url.pathname.startsWith(`${prefix}/`)) ||
      url.hash
    )
      return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
  addEventListener("popstate", () => show());
  function go(address) {
    history.pushState(null, "", address);
    show();
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  return go;
}

/** A problem with everything that an operator needs, and a button that copies it. */
export function problem(error) {
  const told =
    error instanceof Problem
      ? error
      : new Problem({ title: "The page has failed.", detail: String(error?.message ?? error) });
  if (!(error instanceof Problem)) console.error(error);
  const text = [
    told.title,
    told.detail,
    told.type,
    told.request_id && `request ${told.request_id}`,
    ...(told.errors ?? []).map((each) => `${each.field}: ${each.message}`),
  ]
    .filter(Boolean)
    .join("\n");
  return h.div(
    { class: "note problem", role: "alert" },
    h.strong(told.title),
    told.detail !== told.title && h.p(told.detail),
    told.errors?.length
      ? h.ul(told.errors.slice(0, 20).map((each) => h.li(h.code(each.field), " ", each.message)))
      : null,
    told.errors?.length > 20 && h.p(`… and ${told.errors.length - 20} more.`),
    told.request_id &&
      h.p(
        { class: "row small soft" },
        `Request ${told.request_id}`,
        h.button({ class: "plain", type: "button", onclick: () => navigator.clipboard?.writeText(text) }, "Copy"),
      ),
  );
}

/** Draw what `task` resolves to, with a state for loading and for failure. */
export async function draw(node, task, waiting = "Loading …") {
  fill(node, h.p({ class: "empty", role: "status" }, waiting));
  try {
    fill(node, await task());
  } catch (error) {
    fill(node, problem(error));
  }
}

/** A form whose submission runs `task(data, form)`; what it resolves to, or a problem, is shown under it. */
export function form(children, task, { button = "Save", main = true } = {}) {
  const told = h.div({ "aria-live": "polite" });
  const submit = h.button({ type: "submit", class: main && "main" }, button);
  const node = h.form(
    {
      onsubmit: async (event) => {
        event.preventDefault();
        submit.disabled = true;
        try {
          const shown = await task(Object.fromEntries(new FormData(node)), node);
          fill(told, shown && (typeof shown === "string" ? h.div({ class: "note" }, shown) : shown));
        } catch (error) {
          fill(told, problem(error));
        } finally {
          submit.disabled = false;
        }
      },
    },
    children,
    h.div({ class: "row" }, submit),
    told,
  );
  return node;
}

/** The explanation of the numbers, the same on every page. */
export function explained(guarantee, title = "What does this mean?") {
  return h.details(
    { class: "explain" },
    h.summary(title),
    h.ul(fourSentences(guarantee).map((each) => h.li(each))),
    h.dl(UNITS.map(([term, meaning]) => [h.dt(h.strong(term)), h.dd(meaning)])),
  );
}

/** Numbers with their names below. */
export function facts(pairs) {
  return h.dl(
    { class: "facts" },
    pairs.filter(Boolean).map(([value, name]) => h.div(h.dt(name), h.dd(value))),
  );
}

/** A failure that nothing else caught is shown, not lost. */
addEventListener("unhandledrejection", (event) => {
  main.prepend(problem(event.reason));
});
