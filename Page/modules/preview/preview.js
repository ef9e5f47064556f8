// The preview tab: a push as a phone displays it, or the reason why nothing is displayed.
import { button, h, replace } from "../dom.js";
import { gauge } from "../gauge.js";
import { icon } from "../icons.js";
import { apsOf, KIND_NAMES, object } from "../summary.js";
import { visible } from "../visible.js";
import { outcomeLine } from "./outcome.js";
import { activityCard, activityFacts } from "./activity.js";
import { alertFacts, banner } from "./alert.js";
import { display } from "./display.js";
import { callScreen, talkPill } from "./calls.js";
import { phone } from "./phone.js";
import { plainFacts } from "./plain.js";

export function previewTab(record, actions) {
  const preview = display(record);
  return [
    h("div", { class: "preview" }, stage(record, preview)),
    statement(preview),
    facts(record, preview.kind),
    preview.notes.length > 0 && h("ul", { class: "notes" }, preview.notes.map((note) => h("li", {}, visible(note)))),
    gauge(record.request?.size),
    outcomeLine(record),
    h("p", {}, button("Why this response?", () => actions.tab("verdict"), { class: "small" })),
    h("p", { class: "quiet approximation" }, "An approximation: the actual display depends on the device's settings, its system and the app."),
  ];
}

/** States whether something is displayed, or why nothing is. */
function statement(preview) {
  if (preview.shows) {
    return h("p", { class: "statement is-shown" }, icon("accepted"), h("span", {}, preview.kind === "liveactivity"
      ? "A device displays this in its Live Activity." : "A device displays this."));
  }
  return h("p", { class: "statement is-not-shown" }, icon("rejected"), h("span", {}, h("strong", {}, "Nothing is displayed. "),
    visible(preview.why.replace(/^Nothing is displayed[:.] ?/, "").replace(/^./, (letter) => letter.toUpperCase()))));
}

// Where alerts are displayed; applies to all pushes until changed.
let surface = "lock screen";

/** The phone, and for alerts a field to select where they are displayed. */
function stage(record, preview) {
  if (preview.kind !== "alert" || !preview.wouldShow) return screen(record, preview);
  const container = h("div", { class: "stage" });
  const picker = h("select", { "aria-label": "Where it is displayed", class: "surface-picker", on: { change: () => { surface = picker.value; draw(); } } },
    ["lock screen", "banner"].map((name) => h("option", { selected: name === surface }, name)));
  const draw = () => replace(container, phone(banner(record), { isDimmed: !preview.shows, surface }), picker);
  draw();
  return container;
}

function screen(record, preview) {
  const { kind } = preview;
  // Undelivered pushes are displayed as if they had been delivered.
  const isDimmed = !record.accepted;
  if (kind === "liveactivity" && apsOf(record)) return phone(activityCard(record), { isDimmed: !preview.shows });
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
