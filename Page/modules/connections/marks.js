// The events of a connection on the time line. Events that would overlap are one mark.
import { h } from "../dom.js";
import { dayTime } from "../format.js";

const NAMES = { accepted: "TCP", handshake: "TLS", settings: "SETTINGS", goaway: "GOAWAY", reset: "RESET", fault: "FAULT", closed: "closed" };
const IMPORTANT = ["goaway", "reset", "fault"];
const LABEL = 104; // the width of a label in pixels

/** The name of an event. */
export function eventName(event) { return NAMES[event] ?? event; }

export function marks(events, window, width) {
  const placed = [];
  for (const event of events) {
    const time = Date.parse(event.at);
    if (time < window.from || time > window.until) continue;
    const left = window.at(time, width);
    const last = placed.at(-1);
    // A label at the right edge is on the left side of its mark.
    if (last && left - last.left < (left > width - LABEL ? 2 * LABEL : LABEL)) last.events.push(event);
    else placed.push({ left, events: [event] });
  }
  return placed.map(({ left, events: here }) => {
    const main = here.find((event) => IMPORTANT.includes(event.event)) ?? here[0];
    const isLast = left > width - LABEL;
    return h("span", {
      class: `lane-mark event-${main.event}${isLast ? " is-last" : ""}`, style: isLast ? { right: `${Math.max(0, width - left)}px` } : { left: `${left}px` },
      title: here.map((event) => `${dayTime(event.at)} ${eventName(event.event)} ${event.detail ?? ""}`.trim()).join("\n"),
    }, eventName(main.event), here.length > 1 && ` and ${here.length - 1} more`);
  });
}
