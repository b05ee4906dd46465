"""Every choice that the forms of a page offer, one after the other, and the requests that each makes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import ElementHandle, FilePayload, Request, Route

from tests.api.described import Document, faults, operations
from tests.dashboard.browser import Visit

AT_ONCE: Final = "const later = setTimeout; window.setTimeout = (task, _, ...given) => later(task, 0, ...given);"
"""A page asks once a person has stopped typing: here at once, so that nothing has to be waited for."""
OPENED: Final = "document.querySelectorAll('main details').forEach(each => { each.open = true; })"
NEXT: Final = """seen => {
  const isThere = node => !node.disabled && node.checkVisibility();
  const title = node => node.closest("form, fieldset, section")?.querySelector("h1, h2, h3, legend")?.textContent;
  const named = node => node.labels[0]?.textContent ?? node.getAttribute("aria-label");
  for (const node of [...document.querySelectorAll("main :is(select, input[type=checkbox])")].filter(isThere)) {
    const values = node.type === "checkbox" ? [true, false] : [...node.options].map(option => option.value);
    for (const value of values) {
      const name = JSON.stringify([title(node), node.type === "checkbox" ? named(node) : node.name, value]);
      if (!seen.includes(name)) return { name, node, value };
    }
  }
  const form = [...document.querySelectorAll("main form")].find(each => isThere(each) && !each.dataset.sent);
  return form ? { name: "", node: form, value: null } : null;
}"""
CHOSEN: Final = """({ node, value }) => {
  if (node.type === "checkbox") node.checked = value;
  else if (value !== null) node.value = value;
  for (const kind of ["input", "change"]) node.dispatchEvent(new Event(kind, { bubbles: true }));
}"""
FORMS: Final = """node => {
  const forms = node.closest("form") ? [node.closest("form")] : [...node.closest("section").querySelectorAll("form")];
  return forms.filter(form => form.checkVisibility());
}"""
FILLED: Final = """form => {
  const typed = node => /Type (?:the key )?(.+) to confirm/.exec(node.labels[0]?.textContent ?? "")?.[1];
  for (const node of form.closest("section").querySelectorAll("input, textarea")) {
    if (node.value !== "" || !node.checkVisibility() || node.type === "file") continue;
    const text = { number: String(Math.max(1, Number(node.min))), date: "2026-03-31" }[node.type];
    node.value = typed(node) ?? text ?? (node.placeholder || "x1");
    node.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""
PEOPLE: Final = b"person_id,country\nann,NO\n"
KEYS: Final = b"person_id\nann\n"
ANSWERED: Final = ("/forecast", "/queries/preview", "/session")
"""These have no effect either, so that the service may answer them as it does reads."""
UNDONE: Final[Mapping[str, Any]] = {"status": 409, "json": {"title": "Nothing is done in this test."}}


@dataclass(kw_only=True)
class Choices:
    """The forms of the pages of one visit. A request that would change something is noted, and not done."""

    visit: Visit
    document: Document
    file: bytes = PEOPLE

    def __post_init__(self) -> None:
        self._told: list[str] = []
        self.refused: list[str] = []
        self.visit.expected.append("status of 409")
        self.visit.context.add_init_script(AT_ONCE)
        self.visit.page.on("request", self._note)
        self.visit.page.route("**/v1/**", self._hold)

    def made(self) -> Iterator[tuple[str, list[str]]]:
        """Make each choice that is there, and those that come with another one, and send each form: its faults."""
        page, seen = self.visit.page, list[str]()
        page.evaluate(OPENED)
        self.visit.settle()
        while (found := page.evaluate_handle(NEXT, seen)).json_value() is not None:
            name, node = str(found.get_property("name").json_value()), found.get_property("node").as_element()
            seen.append(name)
            self._told.clear()
            page.evaluate(CHOSEN, found)
            self.visit.settle()
            for form in self._forms(node):
                self._send(form)
            yield name, list(self._told)

    def _forms(self, node: ElementHandle | None) -> list[ElementHandle]:
        if node is None or not node.evaluate("node => node.isConnected && Boolean(node.closest('form, section'))"):
            return []
        listed = node.evaluate_handle(FORMS).get_properties().values()
        return [form for each in listed if (form := each.as_element()) is not None]

    def _send(self, form: ElementHandle) -> None:
        form.evaluate("form => { form.dataset.sent = true; }")
        form.evaluate(FILLED)
        file: FilePayload = {"name": "people.csv", "mimeType": "text/csv", "buffer": self.file}
        for field in form.query_selector_all("input[type=file]"):
            field.set_input_files(file)
        form.evaluate("form => form.requestSubmit()")
        self.visit.settle()
        for confirm in form.query_selector_all(".note button.main"):
            confirm.click()
            self.visit.settle()

    def _hold(self, route: Route) -> None:
        request = route.request
        if request.method == "GET" or urlsplit(request.url).path.endswith(ANSWERED):
            route.continue_()
        else:
            route.fulfill(**UNDONE)

    def _note(self, request: Request) -> None:
        if urlsplit(request.url).path.startswith("/v1/"):
            self._told += faults_of(self.document, request)


def faults_of(document: Document, request: Request) -> list[str]:
    """The faults of a request under the service's own document."""
    asked = urlsplit(request.url)
    place = asked.path.split("/")
    for operation in operations(document):
        parts = operation.path.split("/")
        fits = len(parts) == len(place) and all(a == b or a[:1] == "{" for a, b in zip(parts, place, strict=True))
        if operation.method == request.method and fits:
            break
    else:
        return [f"{request.method} {asked.path} is no operation"]
    known = {each["name"]: each for each in operation.body.get("parameters", ()) if each["in"] == "query"}
    found = []
    for name, text in parse_qsl(asked.query, keep_blank_values=True):
        if name not in known:
            found.append(f"{operation.name}: {name} is no parameter")
        elif all(faults(document, known[name]["schema"], value) for value in _readings(text)):
            found.append(f"{operation.name}: {name} is {text!r}")
    schema = operation.body.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if schema is not None:
        found += [f"{operation.name} {fault}" for fault in faults(document, schema, request.post_data_json)]
    return found


def _readings(text: str) -> list[object]:
    """The values that a text in an address may stand for."""
    words: dict[str, object] = {"true": True, "false": False}
    return [text, *([int(text)] if text.isdecimal() else []), *([words[text]] if text in words else [])]
