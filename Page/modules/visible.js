// Safe display of external text: each piece is isolated in its direction, and invisible characters or characters that
// change the text direction are shown by name.
import { h } from "./dom.js";

const NAMES = new Map([
  [0x00, "NUL"], [0x07, "BEL"], [0x08, "BS"], [0x09, "TAB"], [0x0a, "LF"], [0x0b, "VT"], [0x0c, "FF"], [0x0d, "CR"],
  [0x1b, "ESC"], [0x7f, "DEL"], [0x85, "NEL"], [0xa0, "NBSP"], [0xad, "SHY"], [0x034f, "CGJ"], [0x061c, "ALM"],
  [0x115f, "HCF"], [0x1160, "HJF"], [0x180e, "MVS"], [0x200b, "ZWSP"], [0x200c, "ZWNJ"], [0x200d, "ZWJ"],
  [0x200e, "LRM"], [0x200f, "RLM"], [0x2028, "LSEP"], [0x2029, "PSEP"], [0x202a, "LRE"], [0x202b, "RLE"],
  [0x202c, "PDF"], [0x202d, "LRO"], [0x202e, "RLO"], [0x202f, "NNBSP"], [0x2060, "WJ"], [0x2066, "LRI"],
  [0x2067, "RLI"], [0x2068, "FSI"], [0x2069, "PDI"], [0x3164, "HF"], [0xfeff, "BOM"], [0xfffd, "REPLACED"],
]);

function isHidden(code, before) {
  if (code < 0x20 || (code >= 0x7f && code <= 0xa0)) return true;
  // In an emoji sequence the joiner is part of a visible character.
  if (code === 0x200d && before > 0x2000) return false;
  return NAMES.has(code) || (code >= 0x206a && code <= 0x206f) || (code >= 0xfff9 && code <= 0xfffb)
    || (code >= 0xd800 && code <= 0xdfff) || (code >= 0xe0000 && code <= 0xe0fff);
}

/** Whether `text` contains invisible characters. Line breaks and tabs count only inside. */
export function hasHidden(text) {
  let before = 0;
  for (const character of text) {
    const code = character.codePointAt(0);
    if (isHidden(code, before)) return true;
    before = code;
  }
  return false;
}

/** The name of a character: `U+202E RLO`. */
function nameOf(code) {
  const number = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return NAMES.has(code) ? `${number} ${NAMES.get(code)}` : number;
}

/** The text as nodes in an element with isolated direction, at most `limit` characters. */
export function visible(text, { limit = 20000, lines = false } = {}) {
  const element = h("bdi", { class: "external" });
  let run = "";
  let length = 0;
  let before = 0;
  for (const character of text) {
    length += 1;
    if (length > limit) break;
    const code = character.codePointAt(0);
    if (!isHidden(code, before) || (lines && code === 0x0a)) {
      run += character;
    } else {
      if (run) element.append(run);
      run = "";
      element.append(h("span", { class: "hidden-char", title: nameOf(code) }, NAMES.get(code) ?? nameOf(code)));
    }
    before = code;
  }
  if (run) element.append(run);
  if (length > limit) element.append(h("span", { class: "cut" }, "… truncated"));
  return element;
}

/** The unchanged text with isolated direction, as a phone shows it. */
export function asShown(text, limit = 2000) {
  return h("bdi", { class: "external" }, [...text].length > limit ? [...text].slice(0, limit).join("") + "…" : text);
}
