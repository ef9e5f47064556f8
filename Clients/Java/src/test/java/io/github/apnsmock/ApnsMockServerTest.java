package io.github.apnsmock;

import static io.github.apnsmock.ApnsMockServer.TOPIC;
import static io.github.apnsmock.ApnsMockServer.deviceToken;
import static io.github.apnsmock.TestProvider.send;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.apnsmock.junit.ApnsMock;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

@ApnsMock
final class ApnsMockServerTest {
  private final ApnsMockServer server;

  ApnsMockServerTest(ApnsMockServer server) {
    this.server = server;
  }

  private static String message(Class<? extends Throwable> type, Executable code) {
    return assertThrows(type, code).getMessage();
  }

  @Test
  void recordsPush() throws Exception {
    String device = deviceToken();
    assertEquals(200, send(server, device, TOPIC, "Welcome"));

    List<Push> pushes = server.pushes(Map.of("device_token", device, "payload./aps/alert/title", "Welcome"));
    assertEquals(1, pushes.size());
    Push push = pushes.get(0);
    assertTrue(push.accepted());
    assertEquals("accepted", push.outcome());
    assertEquals(device, push.deviceToken());
    assertEquals(TOPIC, push.topic());
    assertEquals("alert", push.header("APNS-Push-Type"));
    assertEquals("", push.header("absent"));
    assertEquals(200, push.status());
    assertEquals(1, push.attempt());
    assertEquals("", push.rule());
    assertEquals(Map.of("aps", Map.of("alert", Map.of("title", "Welcome"))), push.payload());
    server.verify(List.of(Map.of("match", Map.of("device_token", device), "count", 1, "outcome", "accepted")));
    server.assertNothingLost();
    assertEquals(List.of(), server.findings());
  }

  @Test
  @ApnsMock(profile = "flaky-503?rate=1", seed = 7)
  void injectsFaults() throws Exception {
    assertEquals(503, send(server, deviceToken(), TOPIC, "One"));
    Push push = server.pushes(Map.of("rule", "flaky", "status", 503)).get(0);
    assertEquals("ServiceUnavailable", push.reason());
    assertEquals("flaky", push.rule());
    server.profile("healthy");
    assertEquals(200, send(server, deviceToken(), TOPIC, "Two"));
  }

  @Test
  void bindsDeviceToTopic() throws Exception {
    String device = deviceToken();
    server.device(device).topic("com.acme.other");
    assertEquals(400, send(server, device, TOPIC, "One"));
    assertEquals("DeviceTokenNotForTopic", server.pushes().get(0).reason());
  }

  @Test
  void waitsForPossibleCounts() {
    assertThrows(IllegalArgumentException.class, () -> Wait.atLeast(0));
    assertThrows(IllegalArgumentException.class, () -> Wait.exactly(-1));
  }

  @Test
  void filterValuesAreChecked() {
    assertEquals(List.of(), server.pushes(Map.of("status", List.of(410, "429"), "accepted", false)));
    for (Object value : Arrays.asList(null, List.of(), Map.of(), 'c', Arrays.asList("a", null))) {
      Map<String, Object> filter = new HashMap<>();
      filter.put("status", value);
      String message = message(IllegalArgumentException.class, () -> server.pushes(filter));
      assertTrue(message.startsWith("The filter status has"), message);
    }
  }

  @Test
  @ApnsMock(arguments = {"--rules", "strict", "--admin-token", "secret"})
  void passesArguments(ApnsMockServer strict) throws Exception {
    assertEquals(400, send(strict, deviceToken(), "a topic", "One"));
    // The server of the constructor is that of the class.
    assertNotEquals(server.settings(), strict.settings());
  }

  @Test
  void deviceTokensAreRandom() {
    assertTrue(deviceToken().matches("[0-9a-f]{64}"));
    assertFalse(deviceToken().equals(deviceToken()));
  }
}
