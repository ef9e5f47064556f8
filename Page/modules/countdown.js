// Countdowns to points in time.
import { h } from "./dom.js";

/** Returns an element that counts down from a number of milliseconds. */
export function countdown(milliseconds) {
  const end = Date.now() + milliseconds;
  return h("span", { class: "countdown", data: { end } }, remaining(end));
}

function remaining(end) {
  const seconds = Math.max(0, Math.ceil((end - Date.now()) / 1000));
  const two = (number) => String(number).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}:${two(seconds % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

setInterval(() => {
  for (const element of document.querySelectorAll(".countdown")) element.textContent = remaining(Number(element.dataset.end));
}, 1000);
