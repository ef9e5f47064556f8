// Sends recorded pushes again, with a new provider token.
import { get, post, text } from "./api.js";
import { showError, showMessage } from "./copy.js";
import { count } from "./format.js";

const MAX = 100;

/** What `POST /send` needs to send a recorded push again. Throws an error if its body cannot be sent. */
export async function draftOf(seq) {
  const record = await get(`/pushes/${seq}`);
  const { request } = record;
  if (record.kind !== "push") throw new Error(`#${seq} is not a push to a device token`);
  if (request.body_base64 && request.payload_error && request.size.bytes > 0) await requireText(request, seq);
  const headers = Object.fromEntries((request.headers ?? []).filter(([name]) => !name.startsWith(":") && !SKIPPED.has(name)));
  return { token: request.device_token ?? "", headers, payload: await text(`/pushes/${seq}/payload`) };
}

// `authorization` has no signature, and the HTTP client adds the length.
const SKIPPED = new Set(["authorization", "content-length", "host", "user-agent", "accept-encoding", "accept", "connection"]);

function requireText(request, seq) {
  const bytes = Uint8Array.from(atob(request.body_base64), (letter) => letter.charCodeAt(0));
  if (bytes.length < request.size.bytes) throw new Error(`The body of #${seq} is not stored completely`);
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`The body of #${seq} is not UTF-8; use its curl command`);
  }
}

/** The result of a push in short. */
export function resultOf(result) {
  return result.status ? `${result.status} ${result.reason ?? ""}`.trim() : `${result.outcome}: ${result.message}`;
}

/**
 * Sends pushes again, in the order of their arrival, and reports the results. `onProgress(number)` is called before each with
 * the number of those sent; it ends early when `signal` is aborted.
 */
export async function resend(seqs, { signal, onProgress }) {
  if (seqs.length > MAX) return showMessage(`${count(seqs.length)} pushes are selected; at most ${MAX} are sent again at once`, true);
  const results = new Map();
  let sent = 0;
  try {
    for (const seq of seqs) {
      if (signal.aborted) break;
      onProgress(sent);
      const draft = await draftOf(seq);
      if (signal.aborted) break;
      const result = resultOf(await post("/send", draft));
      results.set(result, (results.get(result) ?? 0) + 1);
      sent += 1;
    }
  } catch (error) {
    showError(error);
  }
  const list = [...results].map(([result, number]) => (seqs.length > 1 ? `${number} × ${result}` : result)).join(", ");
  if (sent < seqs.length) showMessage(`Sent ${sent} of ${seqs.length} again${list && `: ${list}`}`, !signal.aborted);
  else showMessage(`Sent again: ${list}`);
  return null;
}
