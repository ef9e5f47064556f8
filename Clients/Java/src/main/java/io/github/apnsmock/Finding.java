package io.github.apnsmock;

import java.util.List;

/**
 * A kind of mistake that the provider made although APNs accepted its pushes.
 *
 * @param name the name of the kind, such as {@code hot-retry}
 * @param count the number of pushes with this finding
 * @param summary the mistake
 * @param advice the correct behavior
 * @param records the newest pushes with this finding
 */
public record Finding(String name, int count, String summary, String advice, List<Proof> records) {
  /**
   * A push with a finding.
   *
   * @param seq the push
   * @param evidence the pushes that prove the finding
   * @param explanation the reason for the finding
   */
  public record Proof(long seq, List<Long> evidence, String explanation) {}

  static Finding of(Object item) {
    Values all = new Values(item);
    List<Proof> records = all.list("records").stream().map(Values::new).map(record -> new Proof(
        record.number("seq"), record.list("evidence").stream().map(seq -> ((Number) seq).longValue()).toList(),
        record.string("explanation"))).toList();
    return new Finding(
        all.string("finding"), (int) all.number("count"), all.string("summary"), all.string("advice"), records);
  }
}
