package io.github.apnsmock;

import java.time.Duration;

/**
 * A number of pushes to wait for, and the times of the wait.
 *
 * @param count the condition as the server reads it: {@code 3} is three or more, {@code =3} exactly three, {@code 0}
 *     none
 * @param timeout the maximum time to wait, up to 5 minutes; null for 10 seconds
 * @param settle the time for which the number must not change; null for none
 */
public record Wait(String count, Duration timeout, Duration settle) {
  /** Returns a wait for {@code count} or more pushes; at least 1. To wait for silence, use {@code exactly(0)}. */
  public static Wait atLeast(int count) {
    if (count < 1) {
      throw new IllegalArgumentException(
          "Cannot wait for at least " + count + " pushes; use atLeast(1) or more, or exactly(0) for none.");
    }
    return new Wait(Integer.toString(count), null, null);
  }

  /**
   * Returns a wait for exactly {@code count} pushes. Add {@link #settle}; otherwise a further push could still arrive.
   */
  public static Wait exactly(int count) {
    if (count < 0) {
      throw new IllegalArgumentException("Cannot wait for " + count + " pushes; use a number that is not negative.");
    }
    return new Wait(count == 0 ? "0" : "=" + count, null, null);
  }

  /** Returns this wait with a maximum time. */
  public Wait within(Duration timeout) {
    return new Wait(count, timeout, settle);
  }

  /** Returns this wait with a time for which the number of matching pushes must not change. */
  public Wait settle(Duration settle) {
    return new Wait(count, timeout, settle);
  }
}
