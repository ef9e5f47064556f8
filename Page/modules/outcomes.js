// The outcomes of attempts.

/** The outcomes, in the order in which they are listed. */
export const OUTCOMES = [
  "accepted", "rejected", "response_lost", "unanswered", "unprocessed", "incomplete", "malformed", "pending", "unknown",
];

/** The name of an outcome in text. */
export function outcomeText(outcome) {
  return (outcome ?? "").replace("_", " ");
}
