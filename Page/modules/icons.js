// Inline icons of 16 by 16 pixels in the text color.
import { svg } from "./dom.js";

const PATHS = {
  accepted: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm3.7 5.2-4.3 4.5a.8.8 0 0 1-1.1 0L4.3 8.6a.75.75 0 0 1 1.1-1.1l1.4 1.5 3.8-3.9a.75.75 0 0 1 1.1 1.1z",
  rejected: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm2.9 8.8a.75.75 0 1 1-1.1 1.1L8 9.1l-1.8 1.8a.75.75 0 0 1-1.1-1.1L6.9 8 5.1 6.2a.75.75 0 0 1 1.1-1.1L8 6.9l1.8-1.8a.75.75 0 0 1 1.1 1.1L9.1 8z",
  warning: "M7 1.9a1.15 1.15 0 0 1 2 0l6 10.7a1.15 1.15 0 0 1-1 1.7H2a1.15 1.15 0 0 1-1-1.7zM8 5a.75.75 0 0 0-.75.75v3.2a.75.75 0 0 0 1.5 0v-3.2A.75.75 0 0 0 8 5zm0 6.9a.9.9 0 1 0 0-1.8.9.9 0 0 0 0 1.8z",
  pending: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 1.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zm-.75 2v3.8l2.6 2.1a.75.75 0 0 0 .9-1.2l-2-1.6V4.5a.75.75 0 0 0-1.5 0z",
  muted: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 1.5a5.4 5.4 0 0 1 3.2 1L3.500 11.200a5.500 5.500 0 0 1 4.500-8.700zm4.500 2.300a5.500 5.500 0 0 1-7.700 7.700z",
  flag: "M3.750 1a.75.75 0 0 0-.75.75v12.500a.75.75 0 0 0 1.500 0V10h7.700a.6.6 0 0 0 .5-.950L10.600 6l2.100-3.050a.6.6 0 0 0-.5-.950H4.500a.75.75 0 0 0-.75-.750z",
  search: "M7 1.500a5.500 5.500 0 1 0 3.300 9.900l3 3a.78.78 0 0 0 1.100-1.100l-3-3A5.500 5.500 0 0 0 7 1.500zM7 3a4 4 0 1 1 0 8 4 4 0 0 1 0-8z",
  copy: "M5.500 1A1.500 1.500 0 0 0 4 2.500V4H2.500A1.500 1.500 0 0 0 1 5.500v8A1.500 1.500 0 0 0 2.500 15h6a1.500 1.500 0 0 0 1.500-1.500V12h3.500a1.500 1.500 0 0 0 1.500-1.500v-8A1.500 1.500 0 0 0 13.500 1zm0 1.500h8v8H10v-5A1.500 1.500 0 0 0 8.500 4h-3zm-3 3h6v8h-6z",
  pause: "M4.500 2.500h2.250v11H4.500zm4.750 0h2.250v11H9.250z",
  play: "M4 2.300v11.400a.6.6 0 0 0 .9.500l9-5.700a.6.6 0 0 0 0-1L4.900 1.800a.6.6 0 0 0-.9.500z",
  theme: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 1.500v11a5.500 5.500 0 0 1 0-11z",
  close: "M3.700 2.600a.78.78 0 0 0-1.100 1.100L6.900 8l-4.300 4.300a.78.78 0 0 0 1.100 1.100L8 9.100l4.300 4.300a.78.78 0 0 0 1.100-1.100L9.100 8l4.300-4.300a.78.78 0 0 0-1.100-1.100L8 6.900z",
  back: "M9.800 2.600a.78.78 0 0 1 1.100 1.100L6.600 8l4.300 4.300a.78.78 0 0 1-1.100 1.100L5 8.550a.78.78 0 0 1 0-1.100z",
  bell: "M8 1a4.500 4.500 0 0 0-4.500 4.500v2.800L2.100 11a.7.7 0 0 0 .6 1h10.600a.7.7 0 0 0 .6-1l-1.400-2.700V5.500A4.500 4.500 0 0 0 8 1zM6 13a2 2 0 0 0 4 0z",
};

/** The icons of outcomes that have none of their own. */
const OUTCOME_ICONS = {
  response_lost: "warning", unanswered: "warning", unprocessed: "muted", incomplete: "muted", malformed: "rejected", unknown: "muted",
};

/** The icon `name`, or that of an outcome, hidden from screen readers because it always has a text label. */
export function icon(name, extra = "") {
  return svg("svg", { class: `icon ${extra}`.trim(), viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: PATHS[OUTCOME_ICONS[name] ?? name], fill: "currentColor", "fill-rule": "evenodd" }));
}
