package io.github.apnsmock;

import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * A record of the inbox: one attempt to send a push. Strings that are null in the record are empty, numbers are 0, times
 * are null.
 *
 * @param seq the key of the record, in the order of arrival
 * @param run the run of a test suite to which the push belongs
 * @param test the name of the test to which the push belongs
 * @param accepted whether APNs accepted the push, regardless of the response that was sent
 * @param decision what APNs did with the push
 * @param ending how the attempt ended for the client
 * @param outcome {@code accepted}, {@code rejected}, {@code response_lost}, {@code unanswered}, {@code unprocessed},
 *     {@code incomplete}, {@code malformed}, {@code pending} or {@code unknown}
 * @param violation how a malformed request violates HTTP/2
 * @param delivery the last state of the delivery to a registered device
 * @param listener the number of the APNs listener
 * @param kind {@code push}, {@code broadcast} or {@code channel}
 * @param environment {@code sandbox} or {@code production}
 * @param receivedAt the time of arrival by the server's clock
 * @param finishedAt the time when the attempt ended
 * @param pushKey the same for all attempts of a push
 * @param attempt 1 for the first attempt of a push
 * @param deviceToken the device token in lower case
 * @param apnsId the {@code apns-id}
 * @param topic the topic
 * @param pushType the push type
 * @param priority the priority
 * @param expiration the time of {@code apns-expiration}
 * @param collapseId the {@code apns-collapse-id}
 * @param connection the id of the connection, such as {@code c17}
 * @param http {@code h2} or {@code http/1.1}
 * @param status the status of the response that was sent; 0 without a response
 * @param reason the reason of the response that was sent
 * @param rule the fault rule that affected the push or ended its connection
 * @param findings the names of the findings about the provider
 * @param json the whole record
 */
public record Push(
    long seq, String run, String test, boolean accepted, String decision, String ending, String outcome, String violation,
    String delivery, int listener, String kind, String environment, Instant receivedAt, Instant finishedAt,
    String pushKey, int attempt, String deviceToken, String apnsId, String topic, String pushType, int priority,
    String expiration, String collapseId, String connection, String http, int status, String reason, String rule,
    List<String> findings, Map<String, Object> json) {

  static Push of(Object record) {
    Values all = new Values(record);
    Values request = all.object("request");
    Values apns = all.object("apns");
    Values connection = all.object("connection");
    Values served = all.object("served");
    return new Push(
        all.number("seq"), all.string("run"), all.string("test"), all.isTrue("accepted"), all.string("decision"),
        all.string("ending"), all.string("outcome"), all.string("violation"), all.string("delivery"),
        (int) all.number("listener"), all.string("kind"), all.string("environment"), time(all, "received_at"),
        time(all, "finished_at"), all.string("push_key"), (int) all.number("attempt"), request.string("device_token"),
        apns.string("id"), apns.string("topic"), apns.string("push_type"), (int) apns.number("priority"),
        apns.string("expiration"), apns.string("collapse_id"), connection.string("id"), connection.string("http"),
        (int) served.number("status"), served.string("reason"), all.object("fault").string("rule"),
        all.list("findings").stream().map(String::valueOf).toList(), all.members());
  }

  private static Instant time(Values values, String name) {
    String text = values.string(name);
    return text.isEmpty() ? null : Instant.parse(text);
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
