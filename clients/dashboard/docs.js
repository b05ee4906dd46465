// The reference of the interface, readable, from its own document. It needs no sign-in: the document is public.

import { madeDocument } from "./api.js";
import { operationPart } from "./docs-operation.js";
import { schemaNames, textOf, typePart } from "./docs-schema.js";
import { fill, h } from "./dom.js";
import { decoded, header, main, problem } from "./shell.js";

const EVERYONE = { name: "everyone", title: "Every role", description: "What any key may ask for." };
const contents = h.nav({ id: "contents", "aria-label": "Contents" });
const wide = matchMedia("(min-width: 64rem)");

const sheet = styled("/assets/docs.css");
fill(
  header,
  h.div(
    { class: "bar" },
    h.a({ class: "brand", href: "/" }, "Sparing"),
    h.span({ class: "spring" }),
    h.a({ href: "/openapi.json", download: "openapi.json" }, "openapi.json"),
    h.a({ href: "/sign-in" }, "Sign in"),
  ),
);
fill(main, h.p({ class: "empty", role: "status" }, "Loading …"));
try {
  const told = await madeDocument("openapi.json");
  await sheet;
  const reference = h.div({ class: "reference" }, contents);
  main.replaceWith(reference);
  reference.append(main);
  show(told);
} catch (error) {
  fill(main, problem(error));
}

/** The style sheet of this page alone, once it is there. */
function styled(/** @type {string} */ href) {
  return new Promise((resolve) => {
    document.head.append(h.link({ rel: "stylesheet", href, onload: resolve, onerror: resolve }));
  });
}

function show(told) {
  const groups = grouped(told);
  const queries = new Set(schemaNames(told, { $ref: "#/components/schemas/Query" }));
  const types = Object.keys(told.components.schemas);
  fill(
    main,
    h.section(h.h1("The interface"), h.p({ class: "summary" }, told.info.summary), textOf(told.info.description)),
    groups.map((group) => groupPart(group, groups, told)),
    h.section(
      { id: "types" },
      h.h2("Types"),
      h.p("The parts of requests and responses, by name."),
      h.h3("The query language"),
      types.filter((name) => queries.has(name)).map((name) => typePart(name, told)),
      h.h3("Everything else"),
      types.filter((name) => !queries.has(name)).map((name) => typePart(name, told)),
    ),
  );
  drawContents(groups);
  follow(groups);
  const target = document.getElementById(decoded(location.hash.slice(1)));
  target?.scrollIntoView();
}

/** Operations by role; one that several roles may ask for stands with the last of them, which may ask for the least. */
function grouped(told) {
  const roles = told.tags.map((tag) => ({
    ...tag,
    title: tag.name === "ops" ? "Operator" : capital(tag.name),
    operations: [],
  }));
  const everyone = { ...EVERYONE, operations: [] };
  for (const [address, methods] of Object.entries(told.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const own = roles.filter((role) => operation.tags.includes(role.name));
      (own.length > 2 ? everyone : own.at(-1)).operations.push({
        address,
        method: method.toUpperCase(),
        roles: own.map((role) => role.name),
        ...operation,
      });
    }
  }
  return [...roles.slice(0, -1), everyone, roles.at(-1)];
}

function groupPart(group, groups, told) {
  const elsewhere = groups
    .filter((other) => other !== group && other.name !== EVERYONE.name)
    .flatMap((other) => other.operations.filter((each) => each.roles.includes(group.name)));
  return h.section(
    { id: `role-${group.name}`, class: "role" },
    h.h2(group.title),
    h.p(group.description),
    elsewhere.length
      ? h.p(
          { class: "soft" },
          "Also: ",
          elsewhere.map((each, place) => [place > 0 && ", ", h.a({ href: `#${each.operationId}` }, each.summary)]),
          ".",
        )
      : null,
    group.operations.map((each) => operationPart(each, told)),
  );
}

function drawContents(groups) {
  const list = h.details(
    { open: wide.matches },
    h.summary("Contents"),
    groups.map((group) => [
      h.a({ class: "group", href: `#role-${group.name}` }, group.title),
      h.ul(group.operations.map((each) => h.li(h.a({ href: `#${each.operationId}` }, each.summary)))),
    ]),
    h.a({ class: "group", href: "#types" }, "Types"),
  );
  wide.addEventListener("change", () => {
    list.open = wide.matches;
  });
  list.addEventListener("click", (event) => {
    if (/** @type {Element} */ (event.target).closest("a") && !wide.matches) list.open = false;
  });
  fill(contents, list);
}

/** The entry of the operation that is on the screen is marked. */
function follow(groups) {
  const seen = new Set();
  const order = groups.flatMap((group) => group.operations.map((each) => each.operationId));
  const watch = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
      const first = order.find((id) => seen.has(id));
      for (const link of contents.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
      const link = first && contents.querySelector(`a[href="#${first}"]`);
      link?.setAttribute("aria-current", "location");
      if (link && wide.matches) bringIntoView(link);
    },
    { rootMargin: "-10% 0px -60% 0px" },
  );
  for (const id of order) watch.observe(/** @type {Element} */ (document.getElementById(id)));
}

/** Scroll the contents and nothing else. */
function bringIntoView(link) {
  const box = contents.getBoundingClientRect(),
    own = link.getBoundingClientRect();
  if (own.top < box.top || own.bottom > Math.min(box.bottom, innerHeight))
    contents.scrollTop += own.top - box.top - box.height / 3;
}

function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}
