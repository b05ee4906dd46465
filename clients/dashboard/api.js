// Requests to /v1 of this origin, signed in by the cookie.

/** A refusal: an RFC 9457 problem, or what the browser says when no answer comes. */
export class Problem extends Error {
  constructor({ title, detail, status = 0, type = "", request_id = null, errors = [], rows = null }) {
    super(detail ?? title);
    Object.assign(this, { title, detail: detail ?? title, status, type, request_id, errors, rows });
  }
}

async function request(method, path, { body, headers = {}, key } = {}) {
  const sent = { "X-Sparing-Request": "1", ...headers };
  if (key) sent.Authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { method, body, headers: sent, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Problem({
      title: "The service did not answer.",
      detail: "The service did not answer. Check the connection and try again.",
    });
  }
  if (response.status === 401 && !key) {
    location.assign(`/sign-in?ended=1`);
    await new Promise(() => {});
  }
  if (!response.ok) {
    const told = await response.json().catch(() => ({ title: `The service answered with status ${response.status}.` }));
    throw new Problem({ status: response.status, ...told });
  }
  return response;
}

async function documentOf(response) {
  return response.status === 204 ? null : response.json();
}

export const get = async (path, options) => documentOf(await request("GET", path, options));
export const erase = async (path) => documentOf(await request("DELETE", path));
export const post = async (path, body, options = {}) => documentOf(await sent("POST", path, body, options));
export const put = async (path, body) => documentOf(await sent("PUT", path, body, {}));
export const patch = async (path, body) => documentOf(await sent("PATCH", path, body, {}));

function sent(method, path, body, { headers = {}, key } = {}) {
  const json = body === undefined ? undefined : JSON.stringify(body);
  return request(method, path, {
    body: json,
    key,
    headers: json === undefined ? headers : { "Content-Type": "application/json", ...headers },
  });
}

/** Send a file, telling `progress` the share that has left. */
export function upload(path, file, type, headers, progress) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", path);
    sending.setRequestHeader("Content-Type", type);
    sending.setRequestHeader("X-Sparing-Request", "1");
    for (const [name, value] of Object.entries(headers)) sending.setRequestHeader(name, value);
    sending.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    sending.onerror = () =>
      reject(new Problem({ title: "The connection broke. Nothing is stored twice: send the file again." }));
    sending.onload = () => {
      if (sending.status === 401) return location.assign("/sign-in?ended=1");
      const told = JSON.parse(sending.responseText || "{}");
      return sending.status < 300 ? resolve(told) : reject(new Problem(told));
    };
    sending.send(file);
  });
}

/** Every item of a listing, page after page, at most `most`. */
export async function all(path, most = 100000) {
  const items = [];
  let cursor = null;
  do {
    const page = await get(withQuery(path, { limit: 1000, cursor }));
    items.push(...page.items);
    cursor = page.next;
  } while (cursor && items.length < most);
  return items;
}

/** A path with those parameters that are set. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== ""),
  );
  return query.size ? `${path}?${query}` : path;
}

/** A path of parts that may hold anything. */
export const path = (...parts) => `/v1/${parts.map(encodeURIComponent).join("/")}`;
