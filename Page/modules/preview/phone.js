// The phone frame of previews.
import { h } from "../dom.js";
import { clockTime } from "../format.js";

// What each place looks like: the class of the phone.
const SURFACES = { "lock screen": "is-locked", banner: "is-in-use", "long look": "is-long", "Home Screen": "is-home", "Dynamic Island": "is-island", "full screen": "is-call" };

/**
 * A phone at a time with `card`, or an empty one. `condition`: under which the card would be displayed, null if it is; `label`: what
 * else it depends on; `surface`: the place where the card is.
 */
export function phone(card, { condition = null, label = null, badge, surface = "lock screen", at = null } = {}) {
  const now = at ? new Date(at) : new Date();
  const time = clockTime(now).slice(0, 5);
  const isLocked = surface === "lock screen";
  const isAtTop = ["banner", "Dynamic Island", "Home Screen", "full screen"].includes(surface);
  return h("div", { class: `phone ${SURFACES[surface]}${condition && card ? " is-dimmed" : ""}` },
    h("div", { class: "phone-status", "aria-hidden": "true" }, h("span", {}, isLocked ? "" : time), surface !== "Dynamic Island" && h("span", { class: "phone-camera" }), h("span", { class: "phone-battery" })),
    isLocked && h("div", { class: "phone-clock", "aria-hidden": "true" },
      h("span", { class: "phone-date" }, now.toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long" })), h("span", { class: "phone-time" }, time)),
    !isAtTop && h("div", { class: "phone-fill" }),
    card ?? h("div", { class: "phone-nothing" }, Number.isInteger(badge) && badge > 0 ? [h("span", { class: "phone-badge" }, badge), "only the badge"] : "nothing is shown"),
    label && h("div", { class: "phone-label" }, label),
    condition && card && h("div", { class: "phone-label" }, condition),
    isAtTop && h("div", { class: "phone-fill" }),
    isLocked ? h("div", { class: "phone-buttons", "aria-hidden": "true" }, h("span", {}), h("span", {}))
      : (surface === "banner" || surface === "Home Screen" || surface === "Dynamic Island") && h("div", { class: "phone-dock", "aria-hidden": "true" }, Array.from({ length: 4 }, () => h("span", {}))),
    h("div", { class: "phone-home", "aria-hidden": "true" }));
}
