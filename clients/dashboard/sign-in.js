// The sign-in: the key goes to the service once, in a header, and is kept nowhere.

import { Problem, post } from "./api.js";
import { field, fill, h } from "./dom.js";
import { form, header, main } from "./shell.js";

const ended = new URLSearchParams(location.search).has("ended");
const signing = form(
  [
    field(
      "API key",
      h.input({
        name: "key",
        type: "password",
        autocomplete: "off",
        required: true,
        spellcheck: "false",
        autofocus: true,
        placeholder: "sparing_…",
      }),
      "It is exchanged for a session of half an hour, and kept nowhere in this browser.",
    ),
  ],
  async ({ key }) => {
    const text = key.trim();
    if (!/^[\x21-\x7e]+$/.test(text))
      throw new Problem({ title: "This is not an API key.", detail: "A key is one word that begins with sparing_." });
    const session = await post("/v1/session", undefined, { key: text }).catch((error) => {
      throw error.status === 401
        ? new Problem({
            title: "This key is not valid.",
            detail: "It may be mistyped, revoked or expired. Ask the curator for another one.",
          })
        : error;
    });
    location.replace(`/${session.role}`);
  },
  { button: "Sign in" },
);
fill(
  main,
  h.section(
    { class: "sign-in" },
    h.a({ class: "brand", href: "/" }, "Sparing"),
    h.h1("Sign in"),
    h.p({ class: "soft" }, "A service that answers queries about people and spends each person's privacy sparingly."),
    ended && h.div({ class: "note", role: "status" }, "Your session has ended. Sign in again."),
    signing,
  ),
);
fill(header);
