// Formats JSON text in lines without decoding it: numbers keep their digits, duplicate names remain.

/**
 * The lines of a JSON text. A line is `{depth, pointer, name, kind, text, after}`: `name` is the raw name with its
 * quotation marks or null, `kind` is `string`, `number`, `word`, `open` or `close`, `after` is the text that follows.
 * Null if the text is not JSON.
 */
export function jsonLines(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/g) ?? [];
  const lines = [];
  const stack = [];
  let name = null;
  const pointer = () => stack.map((level) => "/" + level.key).join("");
  for (let index = 0; index < tokens.length; index += 1) {
    const token = tokens[index];
    const level = stack.at(-1);
    if (token === ",") {
      if (level && !level.isObject) level.key += 1;
      continue;
    }
    if (token === ":") continue;
    if (token === "}" || token === "]") {
      stack.pop();
      const opened = lines.at(-1);
      const after = tokens[index + 1] === "," ? "," : "";
      // An empty object or array stays on one line.
      if (opened?.kind === "open" && opened.opens === stack.length) Object.assign(opened, { text: opened.text + token, after });
      else lines.push({ depth: stack.length, pointer: pointer(), name: null, kind: "close", text: token, after });
      continue;
    }
    if (level?.isObject && name === null && tokens[index + 1] === ":") {
      name = token;
      level.key = escaped(parse(token));
      continue;
    }
    const line = { depth: stack.length, pointer: pointer(), name, text: token, after: tokens[index + 1] === "," ? "," : "" };
    name = null;
    if (token === "{" || token === "[") {
      lines.push({ ...line, kind: "open", opens: stack.length, after: "" });
      stack.push({ isObject: token === "{", key: 0 });
    } else {
      lines.push({ ...line, kind: token[0] === '"' ? "string" : /[-\d]/.test(token[0]) ? "number" : "word" });
    }
  }
  return lines.length ? lines : null;
}

/** The decoded value of a JSON string; the raw text if it is invalid. */
export function parse(token) {
  try {
    return JSON.parse(token);
  } catch {
    return token;
  }
}

function escaped(name) {
  return String(name).replaceAll("~", "~0").replaceAll("/", "~1");
}
