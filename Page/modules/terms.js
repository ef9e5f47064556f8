// Conditions in a search: `status:503 topic:"com.acme.app" order shipped`.

const TERM = /(?:[^\s"]|"(?:[^"\\]|\\.)*")+/g;
const PARTS = /^((?:[^\s":=<>]|"(?:[^"\\]|\\.)*")+)(?:[:=]|(?=[<>]))(!?)(.*)$/s;

// Words that have one meaning, whatever their field: APNs' reasons, an apns-id, and the number of a push.
const REASONS = new Set(["BadCertificate", "BadCertificateEnvironment", "BadChannelId", "BadCollapseId", "BadDeviceToken", "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadExpirationDate", "BadMessageId", "BadPath", "BadPriority",
  "BadRequestParams", "BadRequestPayload", "BadTopic", "CannotCreateChannelConfig", "ChannelNotRegistered", "DeviceTokenNotForTopic", "DuplicateHeaders", "ExpiredProviderToken", "ExpiredToken", "FeatureNotEnabled", "Forbidden", "IdleTimeout",
  "InternalServerError", "InvalidProviderToken", "InvalidPushType", "MethodNotAllowed", "MissingChannelId", "MissingChannelQueueSize", "MissingDeviceToken", "MissingProviderToken", "MissingPushType", "MissingTopic", "PayloadEmpty",
  "PayloadTooLarge", "ServiceUnavailable", "Shutdown", "TooManyProviderTokenUpdates", "TooManyRequests", "TopicDisallowed", "TopicMismatch", "Unregistered", "UnrelatedKeyIdInToken"]);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The field that a word without one belongs to; null for a word that can occur anywhere in a push. */
function fieldOf(word) {
  if (UUID.test(word)) return "id";
  if (/^#[0-9]{1,15}$/.test(word)) return "number";
  return REASONS.has(word) ? "reason" : null;
}

/** The sign of a term, `!` or before a letter `-`, and the term without it. */
function signed(text) {
  const parts = /^(?:!|-(?=[\p{L}"]))/u.exec(text);
  return { isNegated: parts !== null, rest: parts ? text.slice(1) : text };
}

/**
 * The parameters of the API for a search: words without a field occur anywhere in a push, except those of `fieldOf`.
 * `-` negates as `!` does.
 */
export function filterOf(q) {
  const numbers = new Set();
  const search = terms(q).map((text) => {
    const { isNegated, rest } = signed(text);
    const field = fieldOf(rest);
    if (field === "number" && !isNegated) {
      numbers.add(Number(rest.slice(1)));
      return "";
    }
    return `${isNegated ? "!" : ""}${field === null || field === "number" ? rest : `${field}:${rest}`}`;
  }).filter(Boolean).join(" ");
  return { ...(search ? { search } : {}), ...(numbers.size ? { seqs: [...numbers].sort((one, other) => one - other).join(",") } : {}) };
}

function terms(q) {
  return q.match(TERM) ?? [];
}

/** The conditions of a search: `{text, field, value, isNegated}`; the field of a word that can occur anywhere is null. */
export function conditions(q) {
  return terms(q).map((text) => {
    const { isNegated, rest } = signed(text);
    const parts = PARTS.exec(rest);
    if (parts) return { text, field: parts[1], value: unquoted(parts[3]), isNegated: isNegated !== (parts[2] === "!") };
    return { text, field: fieldOf(rest), value: unquoted(rest), isNegated };
  });
}

/** The texts that a search looks for anywhere in a push. */
export function searchedTexts(q) {
  return conditions(q).filter((one) => !one.isNegated && (one.field === null || one.field === "text") && one.value).map((one) => one.value);
}

function unquoted(value) {
  return value.startsWith('"') && value.endsWith('"') && value.length > 1 ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}

/** The value of the condition on `field`; null if there is none, or it is negated. */
export function term(q, field) {
  const found = terms(q).find((one) => one.startsWith(`${field}:`));
  return found ? unquoted(found.slice(field.length + 1)) : null;
}

/** The query with `field:value` instead of other conditions on the field; without any if `value` is null. */
export function withTerm(q, field, value) {
  const others = terms(q).filter((one) => !one.startsWith(`${field}:`));
  return [...others, ...(value === null ? [] : [`${field}:${quoted(value)}`])].join(" ");
}

/** The query without the condition at `index`. */
export function withoutTerm(q, index) {
  return terms(q).filter((_, other) => other !== index).join(" ");
}

/** A value quoted for the query language. A single `*` stays a pattern. */
export function quoted(value) {
  const text = String(value);
  if (text === "*" || /^[\w.-]+$/.test(text)) return text;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("*", "\\*").replaceAll("\n", "\\n").replaceAll("\t", "\\t")}"`;
}

/** The hint of an invalid search, without the list of fields after a suggestion, which is in the syntax sheet. */
export function shortHint({ hint }) {
  return /^did you mean [^?]*\?/.exec(hint ?? "")?.[0] ?? hint ?? "";
}
