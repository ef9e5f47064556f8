// The request's headers in order, each with the results of its checks.
import { h, table } from "../dom.js";
import { visible } from "../visible.js";

// The checks of each header, by their names in the verdict.
const CHECKS = {
  ":method": ["method"], ":path": ["path", "bundle_id", "app_permitted", "broadcast_capability"],
  "authorization": ["credential", "provider_token", "provider_token_age", "key_environment", "connection_team", "related_key",
    "token_updates", "token_update_latch"],
  "apns-topic": ["topic_present", "topic_form", "topic_permitted", "topic_for_type", "device_topic"],
  "apns-push-type": ["push_type", "topic_for_type", "broadcast_push_type"], "apns-id": ["apns_id"], "apns-expiration": ["expiration", "broadcast_expiration"],
  "apns-priority": ["priority", "priority_for_type", "broadcast_priority"], "apns-collapse-id": ["collapse_id"],
  "apns-channel-id": ["channel_id", "channel_registered"], "apns-request-id": ["request_id"],
};

export function headersTab(record) {
  const checks = new Map((record.verdict?.checks ?? []).map((check) => [check.check, check]));
  const headers = record.request?.headers ?? [];
  const times = new Map();
  for (const [name] of headers) times.set(name, (times.get(name) ?? 0) + 1);
  return [
    h("dl", { class: "facts" }, h("dt", {}, "Request"),
      h("dd", { class: "mono wrap" }, visible(`${record.request?.method ?? "?"} ${record.request?.path ?? "?"}`)),
      h("dt", {}, "Connection"), h("dd", {}, connection(record.connection ?? {})),
      h("dt", {}, "Kind"), h("dd", {}, [record.kind, record.environment].filter(Boolean).join(" · ") || "unknown")),
    table("Headers", ["Name", "Value", "Check"], headers.map(([name, value]) => [h("th", { scope: "row", class: "mono" }, visible(name)),
      h("td", { class: "mono wrap" }, visible(value, { limit: 8000 })), h("td", { class: "check-cell" }, result(name, checks, times.get(name)))])),
    headers.some(([name]) => name === "authorization")
      && h("p", { class: "quiet" }, "The token's signature is neither stored nor shown."),
  ];
}

function connection(facts) {
  return [facts.id, facts.stream !== undefined && `stream ${facts.stream}`, facts.client, facts.sni && `SNI ${facts.sni}`, facts.tls]
    .filter(Boolean).join(" · ");
}

function result(name, checks, times) {
  const looked = (CHECKS[name] ?? []).map((check) => checks.get(check)).filter(Boolean);
  const failed = looked.find((check) => !check.ok);
  if (failed) return h("span", { class: "no" }, `✕ ${failed.detail ?? failed.check}`);
  if (times > 1 && name !== "cookie") return h("span", { class: "no" }, `✕ repeated ${times} times`);
  if (looked.length) return h("span", { class: "yes" }, "✓ valid");
  return h("span", { class: "quiet" }, CHECKS[name] ? "not checked" : "no rule");
}
