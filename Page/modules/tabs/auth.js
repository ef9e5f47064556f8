// The provider's credential and its validation.
import { h } from "../dom.js";
import { fullTime } from "../format.js";
import { visible } from "../visible.js";

const MINUTE = 60000;

export function authTab(record) {
  const auth = record.auth ?? {};
  if (auth.kind === "certificate") return certificate(auth.certificate ?? {});
  if (auth.kind !== "token") {
    return h("p", { class: "notice" }, "The request has neither a provider token nor a client certificate. ",
      "Send authorization: bearer with a JWT, or connect with a provider certificate.");
  }
  const token = decoded(record);
  return [
    h("dl", { class: "facts" },
      fact("Signature", h("span", { class: auth.signature === "valid" ? "yes" : "no" },
        auth.signature === "valid" ? "✓ valid" : `✕ ${auth.signature ?? "not checked"}`)),
      fact("Key", auth.key_id && visible(auth.key_id)), fact("Team", auth.team_id && visible(auth.team_id)),
      fact("Issued", auth.issued_at && fullTime(auth.issued_at))),
    ageBar(auth.age_ms),
    token && h("div", { class: "columns" }, part("JWT header", token.header), part("JWT claims", token.claims)),
    h("p", { class: "quiet" }, "The signature is neither stored nor shown. Renew provider tokens every 20 to 60 minutes."),
  ];
}

function fact(name, value) {
  return [h("dt", {}, name), h("dd", { class: "mono" }, value ?? h("span", { class: "quiet" }, "none"))];
}

function certificate(facts) {
  return h("dl", { class: "facts" },
    fact("Kind", "provider certificate"), fact("Bundle id (UID)", facts.subject_uid && visible(facts.subject_uid)),
    fact("Common name", facts.common_name && visible(facts.common_name)),
    fact("Topics", facts.topics?.length ? facts.topics.map((topic) => h("div", {}, visible(topic))) : null),
    fact("Fingerprint", facts.fingerprint && h("span", { class: "wrap" }, facts.fingerprint)));
}

/** The age of the token from 0 to 60 minutes, with a mark at the earliest renewal. */
function ageBar(ms) {
  if (typeof ms !== "number") return null;
  const minutes = ms / MINUTE;
  const level = minutes > 60 ? "over" : minutes > 55 ? "near" : "fine";
  const description = minutes < 0 ? `issued ${Math.round(-minutes)} min in the future`
    : `${Math.floor(minutes)} min old${minutes > 60 ? ", too old (limit 60)" : minutes < 20 ? ", too new to be renewed" : ", renewable"}`;
  return h("div", { class: `gauge is-${level}` },
    h("div", { class: "gauge-bar has-mark", role: "meter", "aria-label": "Age of the provider token", "aria-valuemin": "0",
      "aria-valuemax": "60", "aria-valuenow": Math.round(Math.min(60, Math.max(0, minutes))), "aria-valuetext": description },
    h("div", { class: "gauge-fill", style: { width: `${Math.min(100, Math.max(0, minutes / 0.6))}%` } }),
    h("div", { class: "gauge-mark", title: "20 minutes" })),
    h("span", { class: "gauge-scale", "aria-hidden": "true" }, h("span", {}, "0"), h("span", { class: "at-mark" }, "20 min"), h("span", {}, "60 min")),
    h("span", { class: "gauge-text" }, description));
}

function part(title, value) {
  return h("section", {}, h("h3", {}, title), h("pre", { class: "code" }, visible(value, { lines: true })));
}

/** Header and claims of the JWT as JSON text; null if they cannot be read. */
function decoded(record) {
  const header = (record.request?.headers ?? []).find(([name]) => name === "authorization")?.[1] ?? "";
  const parts = header.replace(/^bearer\s+/i, "").split(".");
  if (parts.length < 2) return null;
  try {
    return { header: pretty(parts[0]), claims: pretty(parts[1]) };
  } catch {
    return null;
  }
}

function pretty(part) {
  const bytes = Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  return JSON.stringify(JSON.parse(new TextDecoder().decode(bytes)), null, 2);
}
