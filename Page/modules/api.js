// A client of the admin API under /api/v1. The token, if required, comes from the URL fragment and stays in memory.
import { takeEarly } from "./early.js";

const MAX_TEXT = 12000; // bytes of a query parameter, in which a comma has three; the server accepts 16 KiB

let token = null;
let askForToken = null;
let answer = null; // returns responses instead of a server

/** An error response of the API. */
export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `status ${status}`);
    this.status = status;
    this.hint = problem.hint ?? "";
    this.problems = problem.problems ?? [];
    this.column = problem.column ?? null;
    this.word = problem.word ?? null;
  }
}

/** Answers requests by `source(path, query)`, which returns JSON or a text, instead of a server. */
export function answerFrom(source) {
  answer = source;
}

/** Whether there is a server, which can change something. */
export const hasServer = () => answer === null;

/** Uses `#token=…` of the URL, now and when it is appended in an open page, and removes it: it is neither visible nor in the history. */
export function takeToken() {
  readToken();
  addEventListener("hashchange", readToken);
}

function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return;
  token = given;
  history.replaceState(history.state, "", location.pathname + location.search);
}

/** Registers `ask(wasWrong)`, which returns a promise of the token when the API requires one. */
export function onTokenNeeded(ask) {
  askForToken = ask;
}

export function setToken(given) {
  token = given;
}

/** Sends a request and returns the response; asks for the token until it is valid. It fails if the response takes longer than `limit` milliseconds. */
export async function request(method, path, { query, body, signal, headers, limit } = {}) {
  const url = "/api/v1" + path + (query ? "?" + new URLSearchParams(query) : "");
  for (;;) {
    const used = token;
    const sent = { ...headers };
    if (used !== null) sent.authorization = `Bearer ${used}`;
    if (body !== undefined) sent["content-type"] ??= "application/json";
    const response = await (takeEarly(url) ?? fetch(url, {
      method, signal: limit ? AbortSignal.any([signal, AbortSignal.timeout(limit)].filter(Boolean)) : signal, headers: sent, cache: "no-store",
      body: body === undefined || typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body),
    })).catch((error) => {
      throw error.name === "AbortError" ? error : new Error("The server does not respond. Check that it runs, then try again.", { cause: error });
    });
    signal?.throwIfAborted(); // An early request has no signal.
    if (response.ok) return response;
    if (response.status === 401 && askForToken) {
      // Another request may have asked for the token since this one was sent.
      if (used === token) await askForToken(used !== null);
      continue;
    }
    throw new ApiError(response.status, await response.json().catch(() => ({})));
  }
}

/** Returns the body of a response as `kind`: text or blob. */
export async function bodyOf(response, kind = "text") {
  return response[kind]().catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server's response ended too early. Check that the server runs, then try again.", { cause: error });
  });
}

/** Returns the JSON of a response; null without a body. */
async function json(method, path, options) {
  if (answer) return answer(path, options.query);
  const text = await bodyOf(await request(method, path, options));
  try {
    return text ? JSON.parse(text) : null;
  } catch (error) {
    throw new Error(`The response to ${method} ${path} is not JSON. Check that the address is that of apns-mock's admin API.`, { cause: error });
  }
}

export const get = (path, query, options = {}) => json("GET", path, { query, ...options });
export const post = (path, body = {}) => json("POST", path, { body });
export const put = (path, body) => json("PUT", path, { body });
export const patch = (path, body) => json("PATCH", path, { body });
export const remove = (path, query) => json("DELETE", path, { query });
export const text = async (path) => (answer ? answer(path) : bodyOf(await request("GET", path)));

/** Saves a response as a file. Without a token the browser streams it to the disk. */
export async function download(path, query, name) {
  const anchor = document.createElement("a");
  anchor.download = name;
  if (token === null) {
    anchor.href = `/api/v1${path}?${new URLSearchParams(query)}`;
    anchor.click();
    return;
  }
  anchor.href = URL.createObjectURL(await bodyOf(await request("GET", path, { query }), "blob"));
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60000);
}

/** Joins values with commas to texts that fit into a query parameter. */
export function urlParts(values) {
  const parts = [];
  let length = Infinity;
  for (const value of values) {
    length += value.length + 3;
    if (length > MAX_TEXT) {
      parts.push(value);
      length = value.length;
    } else parts[parts.length - 1] += `,${value}`;
  }
  return parts;
}
