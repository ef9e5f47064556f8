// The phone frame of previews.
import { h } from "../dom.js";

/**
 * A phone with `card`, or an empty one. `label` is the condition for this appearance, `surface` whether the phone is locked
 * or in use.
 */
export function phone(card, { isDimmed = false, label = null, badge, surface = "lock screen" } = {}) {
  const now = new Date();
  const isLocked = surface === "lock screen";
  return h("div", { class: `phone${isDimmed && card ? " is-dimmed" : ""}${isLocked ? "" : " is-in-use"}` },
    isLocked && h("div", { class: "phone-clock", "aria-hidden": "true" },
      h("span", { class: "phone-date" }, now.toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long" })),
      h("span", { class: "phone-time" }, "9:41")),
    card ?? h("div", { class: "phone-nothing" }, Number.isInteger(badge) && badge > 0 ? [h("span", { class: "phone-badge" }, badge), "only the badge"] : "nothing is shown"),
    label && h("div", { class: "phone-label" }, label),
    !isLocked && h("div", { class: "phone-apps", "aria-hidden": "true" }, Array.from({ length: 8 }, () => h("span", {}))),
    isDimmed && card && h("div", { class: "phone-label" }, "if it were delivered"));
}
