// The curator's page: is the dataset still worth asking?

import { get, path } from "./api.js";
import { dataSection } from "./curator-data.js";
import { keysSection } from "./curator-keys.js";
import { ledgerSection } from "./curator-ledger.js";
import { overviewSection } from "./curator-overview.js";
import { analystsSection, peopleSection } from "./curator-people.js";
import { queriesSection } from "./curator-queries.js";
import { registerSection } from "./curator-register.js";
import { fill, h, select, table } from "./dom.js";
import { count, guarantee } from "./format.js";
import { live } from "./live.js";
import { bar, draw, explained, main, navigate, signedIn, tabs } from "./shell.js";

const SECTIONS = [
  ["", "Overview", overviewSection],
  ["queries", "Queries", queriesSection],
  ["people", "People", peopleSection],
  ["analysts", "Analysts", analystsSection],
  ["data", "Data", dataSection],
  ["ledger", "Ledger", ledgerSection],
];

const session = await signedIn("curator");
const go = navigate("/curator", show);
let watch = null;
show();

async function show() {
  const [name, section = ""] = location.pathname.split("/").slice(2).map(decodeURIComponent);
  watch?.stop();
  watch = null;
  if (!name) return showStart();
  if (name.startsWith("_")) return showCommon(name);
  return showDataset(name, section);
}

function commonTabs(current) {
  const links = [["/curator", "Datasets"]];
  if (session.dataset === null) links.push(["/curator/_register", "Register a dataset"], ["/curator/_keys", "Keys"]);
  tabs(links, current);
}

function showStart() {
  document.title = "Datasets · Sparing";
  bar(session);
  commonTabs("/curator");
  return draw(main, async () => {
    const datasets = await get("/v1/datasets");
    return h.section(
      h.h1("Datasets"),
      datasets.length
        ? table(
            "Datasets",
            [
              { title: "Name", cell: (each) => h.a({ href: `/curator/${each.name}` }, each.name) },
              { title: "Guarantee", cell: guarantee },
              { title: "People", number: true, cell: (each) => count(each.individuals) },
              { title: "Queries", number: true, cell: (each) => count(each.sequence) },
              { title: "Epoch", number: true, cell: (each) => count(each.epoch) },
            ],
            datasets,
          )
        : h.div(
            { class: "empty" },
            "No dataset is registered yet.",
            session.dataset === null && h.a({ class: "button", href: "/curator/_register" }, "Register a dataset"),
          ),
    );
  });
}

function showCommon(name) {
  bar(session);
  commonTabs(`/curator/${name}`);
  document.title = `${name === "_keys" ? "Keys" : "Register a dataset"} · Sparing`;
  return draw(main, () => (name === "_keys" ? keysSection(session) : registerSection(go)));
}

async function showDataset(name, section) {
  const [, title, drawSection] = SECTIONS.find(([place]) => place === section) ?? SECTIONS[0];
  document.title = `${title} of ${name} · Sparing`;
  watch = live(name);
  const chooser = select("dataset", [[name, name]], name, {
    "aria-label": "Dataset",
    onchange: () => go(`/curator/${chooser.value}${section && `/${section}`}`),
  });
  bar(session, { context: chooser, status: watch.node });
  tabs(
    SECTIONS.map(([place, text]) => [`/curator/${name}${place && `/${place}`}`, text]),
    `/curator/${name}${section && `/${section}`}`,
  );
  get("/v1/datasets").then((datasets) =>
    fill(
      chooser,
      datasets.map((each) => h.option({ value: each.name, selected: each.name === name }, each.name)),
    ),
  );
  const own = watch;
  await draw(main, async () => {
    const dataset = await get(path("datasets", name));
    const shown = await drawSection({ dataset, session, watch: own, go });
    return [shown, explained(explainedBy(dataset))];
  });
  own.start();
}

const explainedBy = (dataset) => ({ ...dataset.guarantee, budget_rho: Number(dataset.budget_rho).toPrecision(3) });
