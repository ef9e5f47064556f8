// The properties of pushes that display nothing: background, VoIP, widgets, push-to-talk, device management …
import { h } from "../dom.js";
import { apsOf } from "../summary.js";
import { visible } from "../visible.js";

const MAX_ENTRIES = 12;

/** The properties as names and values. */
export function plainFacts(kind, payload, record) {
  const aps = apsOf(record);
  const rows = [];
  const flag = (key) => rows.push([key, aps?.[key] === undefined ? "missing" : visible(JSON.stringify(aps[key]))]);
  if (kind === "background") flag("content-available");
  if (kind === "widgets" || kind === "controls") flag("content-changed");
  if (kind === "mdm") rows.push(["mdm (PushMagic)", payload?.mdm === undefined ? "missing" : h("code", { class: "wrap" }, visible(String(payload.mdm)))]);
  if (record.apns?.priority !== undefined) rows.push(["Priority", String(record.apns.priority)]);
  if (!payload || kind === "mdm") return rows;
  const own = Object.entries(payload).filter(([name]) => name !== "aps");
  for (const [name, value] of own.slice(0, MAX_ENTRIES)) {
    rows.push([visible(name, { limit: 60 }), visible(typeof value === "string" ? value : JSON.stringify(value), { limit: 300 })]);
  }
  if (own.length > MAX_ENTRIES) rows.push(["…", `${own.length - MAX_ENTRIES} more, see Payload`]);
  return rows;
}
