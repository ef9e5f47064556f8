// The preview tab: a push as a phone displays it, or the reason why nothing is displayed.
import { button, h, replace } from "../dom.js";
import { gauge } from "../gauge.js";
import { icon } from "../icons.js";
import { apsOf, KIND_NAMES, object } from "../summary.js";
import { visible } from "../visible.js";
import { attemptsLine } from "./outcome.js";
import { activityCard, activityFacts } from "./activity.js";
import { alertFacts, banner } from "./alert.js";
import { display } from "./display.js";
import { callScreen, talkPill } from "./calls.js";
import { phone } from "./phone.js";
import { plainFacts } from "./plain.js";

export function previewTab(record, acts) {
  const told = display(record);
  return [
    h("div", { class: "preview" }, stage(record, told)),
    statement(told),
    facts(record, told.kind),
    told.notes.length > 0 && h("ul", { class: "notes" }, told.notes.map((note) => h("li", {}, visible(note)))),
    gauge(record.request?.size),
    attemptsLine(record),
    h("p", {}, button("Why this response?", () => acts.tab("verdict"), { class: "small" })),
    h("p", { class: "quiet approximation" }, "An approximation: the actual display depends on the device's settings, its system and the app."),
  ];
}

/** States whether something is displayed, or why nothing is. */
function statement(told) {
  if (told.shows) {
    return h("p", { class: "statement is-shown" }, icon("accepted"), h("span", {}, told.kind === "liveactivity"
      ? "A device displays this in its Live Activity." : "A device displays this."));
  }
  return h("p", { class: "statement is-not-shown" }, icon("rejected"), h("span", {}, h("strong", {}, "Nothing is displayed. "),
    visible(told.why.replace(/^Nothing is displayed[:.] ?/, "").replace(/^./, (letter) => letter.toUpperCase()))));
}

// Where alerts are displayed; applies to all pushes until changed.
let surface = "lock screen";

/** The phone, and for alerts a field to select where they are displayed. */
function stage(record, told) {
  if (told.kind !== "alert" || !told.wouldShow) return screen(record, told);
  const place = h("div", { class: "stage" });
  const picker = h("select", { "aria-label": "Where it is displayed", class: "surface-picker", on: { change: () => { surface = picker.value; draw(); } } },
    ["lock screen", "banner"].map((name) => h("option", { selected: name === surface }, name)));
  const draw = () => replace(place, phone(banner(record), { isDimmed: !told.shows, surface }), picker);
  draw();
  return place;
}

function screen(record, told) {
  const { kind } = told;
  // Undelivered pushes are displayed as if they had been delivered.
  const isDimmed = !record.accepted;
  if (kind === "liveactivity" && apsOf(record)) return phone(activityCard(record), { isDimmed: !told.shows });
  if (kind === "voip" && record.request?.payload) return phone(callScreen(record), { isDimmed, label: "if the app reports a call" });
  if (kind === "pushtotalk" && record.request?.payload) return phone(talkPill(record), { isDimmed, label: "if the app joins the talk" });
  return phone(null, { badge: kind === "alert" ? apsOf(record)?.badge : undefined });
}

function facts(record, kind) {
  const aps = apsOf(record);
  const rows = kind === "alert" ? alertFacts(aps ?? {}) : kind === "liveactivity" ? activityFacts(aps ?? {})
    : plainFacts(kind, object(record.request?.payload), record);
  return h("dl", { class: "facts" }, h("dt", {}, "Kind"), h("dd", {}, KIND_NAMES[kind] ?? visible(kind)),
    rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
