// Short descriptions of a push: its kind, headline and response.

const SUFFIXES = [
  [".voip-ptt", "pushtotalk"], [".voip", "voip"], [".complication", "complication"],
  [".push-type.liveactivity", "liveactivity"], [".push-type.widgets", "widgets"], [".push-type.controls", "controls"],
  [".pushkit.fileprovider", "fileprovider"], [".location-query", "location"],
];

/** The names of push kinds. */
export const KIND_NAMES = {
  alert: "alert", background: "background", voip: "VoIP call", liveactivity: "Live Activity", widgets: "widgets",
  controls: "controls", pushtotalk: "push-to-talk", mdm: "device management", complication: "complication",
  fileprovider: "file provider", location: "location query",
};

/** Whether a status accepts: a push has 200, a channel created 201, a channel deleted 204. */
export function isSuccess(status) { return status >= 200 && status < 300; }

/** The value if it is a JSON object. */
export function object(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
}

/** The kind of a push: its push type, else a guess from topic and payload. */
export function kindOf(record) {
  const declared = record.apns?.push_type;
  if (declared) return declared;
  const topic = record.apns?.topic ?? "";
  const bySuffix = SUFFIXES.find(([suffix]) => topic.endsWith(suffix));
  if (bySuffix) return bySuffix[1];
  const aps = apsOf(record);
  if (object(record.request?.payload)?.mdm !== undefined && !aps) return "mdm";
  return aps && aps["content-available"] === 1 && aps.alert === undefined ? "background" : "alert";
}

/** The object `aps` of the payload, or null. */
export function apsOf(record) {
  return object(object(record.request?.payload)?.aps);
}

/** Title, subtitle and body of an alert; for localization keys also `key` and `args`. */
export function alertParts(alert) {
  if (typeof alert === "string") return { body: { text: alert } };
  const given = object(alert);
  if (!given) return {};
  const parts = {};
  for (const [part, key] of [["title", "title-loc-key"], ["subtitle", "subtitle-loc-key"], ["body", "loc-key"]]) {
    const args = given[key.replace("key", "args")];
    if (typeof given[key] === "string") {
      parts[part] = { text: typeof given[part] === "string" ? given[part] : "", key: given[key], args: Array.isArray(args) ? args : [] };
    } else if (typeof given[part] === "string" && given[part] !== "") {
      parts[part] = { text: given[part] };
    }
  }
  return parts;
}

/** The headline of a row: text from the payload, or a description in ⟨ ⟩. */
export function headline(record) {
  const kind = kindOf(record);
  const ours = (description) => ({ text: `⟨${description}⟩`, isOurs: true });
  if (record.request?.payload === null || record.request?.payload === undefined) {
    return ours(record.request?.size?.bytes ? "not JSON" : "no payload");
  }
  const aps = apsOf(record);
  if (kind === "liveactivity") return ours(`live activity: ${typeof aps?.event === "string" ? aps.event : "no event"}`);
  const parts = alertParts(aps?.alert);
  const first = parts.title ?? parts.body ?? parts.subtitle;
  if (first) return { text: first.key ? `${first.key}${first.args.length ? ` (${first.args.join(", ")})` : ""}` : first.text };
  if (kind === "alert" && aps?.badge !== undefined) return ours(`badge ${JSON.stringify(aps.badge)}`);
  if (kind === "alert" && aps?.sound !== undefined) return ours("sound only");
  if (kind === "background") return ours("silent");
  return ours(kind === "alert" ? "nothing to show" : (KIND_NAMES[kind] ?? kind).toLowerCase());
}

/** The response in short: `503`, `reset`, `…`. */
export function responseText(record) {
  const served = record.served ?? {};
  if (served.status) return String(served.status);
  if (served.reset) return "reset";
  if (served.closed) return "closed";
  return record.outcome === "pending" ? "…" : "–";
}
