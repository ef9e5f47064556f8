package io.github.apnsmock;

import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * A record of the inbox: one attempt to send a push. Strings that are null in the record are empty, numbers are 0.
 *
 * @param seq the key of the record, in the order of arrival
 * @param accepted whether APNs accepted the push, regardless of the response that was sent
 * @param outcome {@code accepted}, {@code rejected}, {@code response_lost}, {@code unanswered}, {@code unprocessed},
 *     {@code incomplete}, {@code malformed}, {@code pending} or {@code unknown}
 * @param receivedAt the time of arrival by the server's clock
 * @param pushKey the same for all attempts of a push
 * @param attempt 1 for the first attempt of a push
 * @param deviceToken the device token in lower case
 * @param apnsId the {@code apns-id}
 * @param topic the topic
 * @param pushType the push type
 * @param connection the id of the connection, such as {@code c17}
 * @param status the status of the response that was sent; 0 without a response
 * @param reason the reason of the response that was sent
 * @param rule the fault rule that affected the push or ended its connection
 * @param findings the names of the findings about the provider
 * @param json the whole record
 */
public record Push(
    long seq, boolean accepted, String outcome, Instant receivedAt, String pushKey, int attempt, String deviceToken,
    String apnsId, String topic, String pushType, String connection, int status, String reason, String rule,
    List<String> findings, Map<String, Object> json) {

  static Push of(Object record) {
    Values all = new Values(record);
    Values request = all.object("request");
    Values apns = all.object("apns");
    Values served = all.object("served");
    return new Push(
        all.number("seq"), all.isTrue("accepted"), all.string("outcome"), Instant.parse(all.string("received_at")),
        all.string("push_key"), (int) all.number("attempt"), request.string("device_token"), apns.string("id"),
        apns.string("topic"), apns.string("push_type"), all.object("connection").string("id"),
        (int) served.number("status"), served.string("reason"), all.object("fault").string("rule"),
        all.list("findings").stream().map(String::valueOf).toList(), all.members());
  }

  /** Returns the body of the request if it is JSON: maps, lists, strings, numbers, booleans; otherwise null. */
  public Object payload() {
    return new Values(json).object("request").members().get("payload");
  }

  /** Returns the first value of a header field of the request, or an empty string. */
  public String header(String name) {
    for (Object field : new Values(json).object("request").list("headers")) {
      if (field instanceof List<?> pair && pair.size() == 2 && name.equalsIgnoreCase(String.valueOf(pair.get(0)))) {
        return String.valueOf(pair.get(1));
      }
    }
    return "";
  }
}
