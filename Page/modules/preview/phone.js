// The phone frame of previews.
import { h } from "../dom.js";

// What each place looks like: the class of the phone, and where its cards are.
const SURFACES = { "lock screen": "is-locked", banner: "is-in-use", "long look": "is-long", "Home Screen": "is-home", "Dynamic Island": "is-island", "full screen": "is-call" };

/**
 * A phone at a time with `card`, or an empty one. `label` is the condition for this appearance, `surface` the place where the
 * card is.
 */
export function phone(card, { isDimmed = false, label = null, badge, surface = "lock screen", at = null } = {}) {
  const now = at ? new Date(at) : new Date();
  const isLocked = surface === "lock screen";
  return h("div", { class: `phone ${SURFACES[surface]}${isDimmed && card ? " is-dimmed" : ""}` },
    (isLocked || surface === "Home Screen") && h("div", { class: "phone-clock", "aria-hidden": "true" },
      isLocked && h("span", { class: "phone-date" }, now.toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long" })),
      h("span", { class: "phone-time" }, now.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }))),
    surface === "banner" || surface === "Dynamic Island" ? null : h("div", { class: "phone-fill" }),
    card ?? h("div", { class: "phone-nothing" }, Number.isInteger(badge) && badge > 0 ? [h("span", { class: "phone-badge" }, badge), "only the badge"] : "nothing is shown"),
    label && h("div", { class: "phone-label" }, label),
    (surface === "banner" || surface === "Dynamic Island") && h("div", { class: "phone-apps", "aria-hidden": "true" }, Array.from({ length: 8 }, () => h("span", {}))),
    isDimmed && card && h("div", { class: "phone-label" }, "if it were delivered"));
}
