// The previews of VoIP and push-to-talk pushes: what the system shows after the app's response.
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { object } from "../summary.js";
import { asShown } from "../visible.js";
import { appName } from "./app.js";

const CALLER_KEYS = ["caller_name", "callerName", "caller", "from_name", "displayName", "display_name", "handle", "from", "name", "title"];
const TALKER_KEYS = ["activeRemoteParticipant", "activeSpeaker", "active_speaker", "speaker", "name"];

/** The first string with one of these keys, in the payload or an object in it. */
function find(payload, keys) {
  const places = [payload, ...Object.values(payload).filter(object)];
  for (const key of keys) for (const place of places) if (typeof place[key] === "string" && place[key]) return place[key];
  return null;
}

/** The call on the whole screen, as on a locked device. */
export function callScreen(record) {
  const caller = find(object(record.request.payload) ?? {}, CALLER_KEYS);
  return h("article", { class: "call-screen" },
    h("div", { class: "call-who" }, h("span", { class: "note-title" }, asShown(caller ?? "Unknown caller", 120)), h("span", {}, asShown(`${appName(record)} audio…`))),
    h("div", { class: "call-buttons", "aria-hidden": "true" }, ["no", "yes"].map((answer) => h("span", { class: "call-answer" }, h("span", { class: `call-button is-${answer}` }, icon("phone")), answer === "no" ? "Decline" : "Accept"))));
}

/** The call as a banner, as on a device in use. */
export function callBanner(record) {
  const caller = find(object(record.request.payload) ?? {}, CALLER_KEYS);
  return h("article", { class: "call-card" },
    h("div", { class: "call-who" }, h("span", { class: "note-title" }, asShown(caller ?? "Unknown caller", 120)), h("span", {}, asShown(`${appName(record)} audio…`))),
    h("span", { class: "call-button is-no", "aria-hidden": "true" }, icon("phone")), h("span", { class: "call-button is-yes", "aria-hidden": "true" }, icon("phone")));
}

export function talkPill(record) {
  const talker = find(object(record.request.payload) ?? {}, TALKER_KEYS);
  return h("article", { class: "call-card" }, h("span", { class: "call-button is-talk", "aria-hidden": "true" }, icon("microphone")),
    h("div", { class: "call-who" }, h("span", { class: "note-title" }, asShown(talker ?? "Somebody", 120)), h("span", {}, "is talking")));
}
