// The curator's page: is the dataset still worth asking?

import { all, get, path } from "./api.js";
import { overviewSection } from "./curator-overview.js";
import { queriesSection } from "./curator-queries.js";
import { fill, h, select, table } from "./dom.js";
import { count, guarantee, times } from "./format.js";
import { Watch } from "./live.js";
import { bar, draw, explained, main, navigate, places, signedIn, tabs } from "./shell.js";
import { promisedBy } from "./words.js";

/** @type {[string, string, (shown: any) => Promise<import("./dom.js").Part>][]} loaded where they are shown */
const SECTIONS = [
  ["", "Overview", overviewSection],
  ["queries", "Queries", queriesSection],
  ["people", "People", async (shown) => (await import("./curator-people.js")).peopleSection(shown)],
  ["analysts", "Analysts", async (shown) => (await import("./curator-analysts.js")).analystsSection(shown)],
  ["data", "Data", async (shown) => (await import("./curator-data.js")).dataSection(shown)],
  ["ledger", "Ledger", async (shown) => (await import("./curator-ledger.js")).ledgerSection(shown)],
  ["settings", "Settings", async (shown) => (await import("./curator-settings.js")).settingsSection(shown)],
];

const session = await signedIn("curator");
const go = navigate("/curator", show);
/** @type {Watch | null} */
let watch = null;
show();

async function show() {
  const [name, section = ""] = places();
  watch?.stop();
  watch = null;
  if (!name) return showStart();
  if (name.startsWith("_")) return showCommon(name);
  return showDataset(name, section);
}

function commonTabs(/** @type {string} */ current) {
  /** @type {[string, string][]} */
  const links = [["/curator", "Datasets"]];
  if (session.dataset === null) links.push(["/curator/_register", "Register a dataset"], ["/curator/_keys", "Keys"]);
  tabs(links, current);
}

function showStart() {
  document.title = "Datasets · Sparing";
  bar(session);
  commonTabs("/curator");
  return draw(main, async () => h.section(h.h1("Datasets"), datasetsPart(await all("/v1/datasets"))));
}

function datasetsPart(/** @type {any[]} */ datasets) {
  const register = () => h.a({ class: "button", href: "/curator/_register" }, "Register a dataset");
  if (!datasets.length) {
    return h.div({ class: "empty" }, "No dataset is registered yet.", session.dataset === null && register());
  }
  return table(
    "Datasets",
    [
      { title: "Name", cell: (each) => h.a({ href: `/curator/${each.name}` }, each.name) },
      { title: "Guarantee", cell: guarantee },
      { title: "People", number: true, cell: (each) => count(each.individuals) },
      { title: "Queries", number: true, cell: (each) => count(each.sequence) },
      { title: "Epoch", number: true, cell: (each) => count(each.epoch) },
    ],
    datasets,
  );
}

function showCommon(/** @type {string} */ name) {
  bar(session);
  commonTabs(`/curator/${name}`);
  document.title = `${name === "_keys" ? "Keys" : "Register a dataset"} · Sparing`;
  return draw(main, async () => {
    if (name === "_keys") return (await import("./curator-keys.js")).keysSection();
    const { registerSection } = await import("./curator-register.js");
    return registerSection(go);
  });
}

async function showDataset(/** @type {string} */ name, /** @type {string} */ section) {
  const [, title, drawSection] = SECTIONS.find(([place]) => place === section) ?? SECTIONS[0];
  const own = new Watch(name);
  watch = own;
  document.title = `${title} of ${name} · Sparing`;
  const address = (/** @type {string} */ dataset, place = section) => `/curator/${dataset}${place && `/${place}`}`;
  const chooser = select("dataset", [name], name, {
    "aria-label": "Dataset",
    onchange: () => go(address(chooser.value)),
  });
  bar(session, { context: chooser, status: own.node });
  /** @type {string[]} */
  let asking = [];
  const changed = () => tabs(tabsOf(address(name, ""), asking.length), address(name));
  changed();
  all("/v1/datasets").then((datasets) => {
    const names = datasets.map((/** @type {{ name: string }} */ each) => each.name);
    fill(chooser, [...select("", names, name).childNodes]);
    chooser.value = name;
  });
  await draw(main, async () => {
    const [dataset, requests] = await Promise.all([
      get(path("datasets", name)),
      all(path("datasets", name, "erasure-requests")),
    ]);
    asking = requests;
    changed();
    return [await drawSection({ dataset, session, watch: own, go, asking, changed }), explained(promisedBy(dataset))];
  });
  if (watch === own) own.start();
}

/**
 * The tabs of a dataset; that of the people says how many ask to be erased.
 * @returns {[string, string][]}
 */
function tabsOf(/** @type {string} */ address, /** @type {number} */ asking) {
  const told = (/** @type {string} */ place) =>
    place === "people" && asking > 0 ? `, ${times(asking, "request")}` : "";
  return SECTIONS.map(([place, text]) => [`${address}${place && `/${place}`}`, text + told(place)]);
}
