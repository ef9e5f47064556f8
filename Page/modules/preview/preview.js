// The preview tab: a push as a phone displays it, or the reason why nothing is displayed.
import { get } from "../api.js";
import { button, h, replace } from "../dom.js";
import { gauge } from "../gauge.js";
import { icon } from "../icons.js";
import { apsOf, KIND_NAMES, object } from "../summary.js";
import { quoted } from "../terms.js";
import { visible } from "../visible.js";
import { outcomeLine } from "./outcome.js";
import { activityStates } from "./states.js";
import { activityCard, activityFacts, island } from "./activity.js";
import { alertFacts, banner, homeIcon, longLook } from "./alert.js";
import { appForm } from "./app.js";
import { display } from "./display.js";
import { callBanner, callScreen, talkPill } from "./calls.js";
import { phone } from "./phone.js";
import { plainFacts } from "./plain.js";

export function previewTab(record, actions) {
  const preview = display(record);
  const { element, redraw } = stage(record, preview);
  return [
    h("div", { class: "preview" }, element),
    statement(preview, record),
    facts(record, preview.kind),
    preview.kind === "liveactivity" && activityStates(record, actions.open),
    preview.notes.length > 0 && h("ul", { class: "notes" }, preview.notes.map((note) => h("li", {}, visible(note)))),
    ["alert", "liveactivity", "voip"].includes(preview.kind) && appForm(record, redraw),
    gauge(record.request?.size),
    outcomeLine(record),
    h("p", {}, button("Why this response?", () => actions.tab("verdict"), { class: "small" })),
    h("p", { class: "quiet approximation" }, "An approximation: the actual display depends on the device's settings, its system and the app."),
  ];
}

/** The screen of a device and the statement, without further facts. */
export function previewOf(record) {
  const preview = display(record);
  return [h("div", { class: "preview" }, stage(record, preview).element), statement(preview, record)];
}

/** States whether something is displayed, or why nothing is. */
function statement(preview, record) {
  if (preview.shows) {
    return h("p", { class: "statement is-shown" }, icon("accepted"), h("span", {}, `${preview.isRegistered ? "The" : "A"} device ${preview.isPredicted ? "would display" : "displays"} this`,
      preview.kind === "liveactivity" ? " in its Live Activity." : "."));
  }
  const reason = (text) => visible(text.replace(/^Nothing is displayed[:.] ?/, "").replace(/^./, (letter) => letter.toUpperCase()));
  const why = h("span", {}, reason(preview.why));
  // The record has no more than the finding.
  if (preview.isIgnored && preview.isRegistered) get(`/pushes/${encodeURIComponent(record.seq)}/delivery`).then((found) => found.reason && replace(why, reason(`${found.reason}.`)), () => {});
  return h("p", { class: "statement is-not-shown" }, icon("rejected"), h("span", {}, h("strong", {}, preview.isPredicted ? "Nothing would be displayed. " : "Nothing is displayed. "), why));
}

// Where each kind is displayed, and for each place its card.
const SURFACES = {
  alert: [["lock screen", banner], ["banner", banner], ["long look", longLook], ["Home Screen", homeIcon]],
  liveactivity: [["lock screen", activityCard], ["Dynamic Island", island]],
  voip: [["full screen", callScreen], ["banner", callBanner]],
};
// The chosen place of each kind; applies to all pushes until changed.
const chosen = {};

/** The phone, with a field to select where it is displayed if there are several places; and a function that draws the phone again, not the field, which may have the focus. */
function stage(record, preview) {
  const { kind } = preview;
  const surfaces = SURFACES[kind];
  const has = kind === "voip" ? object(record.request?.payload) : preview.wouldShow && apsOf(record);
  if (!surfaces || !has) return { element: screen(record, preview), redraw: () => {} };
  const picker = h("select", { "aria-label": "Where it is displayed", class: "surface-picker", on: { change: () => { chosen[kind] = picker.value; redraw(); } } },
    surfaces.map(([name]) => h("option", { selected: name === chosen[kind] }, name)));
  const element = h("div", { class: "stage" }, h("div"), picker);
  const redraw = () => {
    const [surface, card] = surfaces.find(([name]) => name === chosen[kind]) ?? surfaces[0];
    element.firstChild.replaceWith(phone(card(record), { condition: conditionOf(preview, kind === "voip"), surface, at: record.received_at, label: kind === "voip" ? "if the app reports a call" : null }));
    if (surface === "lock screen" && kind === "alert") addStack(record, element);
  };
  redraw();
  return { element, redraw };
}

/** The condition under which the card would be displayed; null if it is. `isApps`: whether the app displays it, not the system. */
function conditionOf(preview, isApps) {
  if (!preview.arrives) return "if it were delivered";
  return isApps || preview.shows ? null : "if the device displayed it";
}

/** Shows below a notification how many others of its thread the device may have. */
async function addStack(record, container) {
  const thread = apsOf(record)?.["thread-id"];
  const { device_token: token } = record.request;
  const topic = record.apns?.topic ?? "";
  // A search cannot have every text.
  if (!record.seq || ![token, topic, thread].every((text) => typeof text === "string" && text.length < 300 && !/[\p{Cc}\p{Cs}]/u.test(text))) return;
  const q = `token:${quoted(token)} topic:${quoted(topic)} payload./aps/thread-id:${quoted(thread)} accepted:true${record.delivery ? " delivery:delivered*" : ""}`;
  const page = await get("/pushes", { q, before: record.seq, limit: 0 }).catch(() => null);
  const card = container.querySelector(".note-card");
  if (!page?.matched || !card) return;
  card.classList.add("is-stacked");
  card.after(h("div", { class: "phone-label" }, `${page.matched} earlier in this thread`));
}

function screen(record, preview) {
  const { kind } = preview;
  const at = record.received_at;
  if (kind === "pushtotalk" && record.request?.payload) return phone(talkPill(record), { condition: conditionOf(preview, true), at, label: "if the app joins the talk" });
  return phone(null, { at, badge: kind === "alert" && preview.arrives ? apsOf(record)?.badge : undefined });
}

function facts(record, kind) {
  const aps = apsOf(record);
  const rows = kind === "alert" ? alertFacts(aps ?? {}) : kind === "liveactivity" ? activityFacts(aps ?? {})
    : plainFacts(kind, object(record.request?.payload), record);
  return h("dl", { class: "facts" }, h("dt", {}, "Kind"), h("dd", {}, KIND_NAMES[kind] ?? visible(kind)),
    rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
