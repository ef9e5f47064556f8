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
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
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
    String end = " com.example.app attempt 1: 503 ServiceUnavailable by rule flaky";
    assertTrue(push.summary().endsWith(end), push.summary());
    assertTrue(message(AssertionError.class, server::assertNothingLost).contains("nothing_lost"));
    assertTrue(server.report().startsWith("apns-mock: seed 7, profile flaky-503?rate=1, pushes: 1\n  #"));
    server.profile("healthy");
    assertEquals(200, send(server, deviceToken(), TOPIC, "Two"));
  }

  @Test
  void addsRules() throws Exception {
    Map<String, ?> response = Map.of("status", 500, "reason", "InternalServerError");
    server.rule(Map.of("name", "down", "do", Map.of("respond", response)), Duration.ofSeconds(30));
    assertEquals(500, send(server, deviceToken(), TOPIC, "One"));
  }

  @Test
  void setsDeviceStates() throws Exception {
    String device = deviceToken();
    server.device(device).unregistered(Instant.parse("2026-01-02T03:04:05Z"));
    assertEquals(410, send(server, device, TOPIC, "One"));
    server.device(device).expired();
    assertEquals(410, send(server, device, TOPIC, "Two"));
    server.device(device).topic("com.acme.other");
    assertEquals(400, send(server, device, TOPIC, "Three"));
    server.device(device).online();
    assertEquals(200, send(server, device, TOPIC, "Four"));
    assertEquals(
        List.of("Unregistered", "ExpiredToken", "DeviceTokenNotForTopic", ""),
        server.pushes().stream().map(Push::reason).toList());
  }

  @Test
  void movesClock() throws Exception {
    server.clock().freeze();
    server.clock().advance(Duration.ofMinutes(61));
    assertEquals(403, send(server, deviceToken(), TOPIC, "One"));
    server.clock().freeze(Instant.now());
    server.clock().real();
    assertEquals(200, send(server, deviceToken(), TOPIC, "Two"));
  }

  @Test
  void waitNamesNearestPush() throws Exception {
    String device = deviceToken();
    send(server, device, TOPIC, "One");
    Map<String, ?> filter = Map.of("device_token", device);
    assertEquals(1, server.waitFor(1, filter).size());
    server.waitFor(Wait.exactly(1).settle(Duration.ofMillis(50)), filter);
    server.waitFor(Wait.exactly(0).settle(Duration.ofMillis(50)), Map.of("status", ">=400"));
    String message = message(AssertionError.class, () -> server.waitFor(
        Wait.atLeast(1).within(Duration.ofMillis(50)), Map.of("device_token", device, "status", 410)));
    assertTrue(message.contains("differs in [status] and matches in [device_token]"), message);
    assertThrows(IllegalArgumentException.class, () -> Wait.atLeast(0));
    assertThrows(IllegalArgumentException.class, () -> Wait.exactly(-1));
  }

  @Test
  void verifyThrowsReport() throws Exception {
    send(server, deviceToken(), TOPIC, "Welcome ");
    String message = message(AssertionError.class, () -> server.verify(
        List.of(Map.of("name", "welcome push", "match", Map.of("payload", Map.of("/aps/alert/title", "Welcome"))))));
    assertTrue(message.contains("✗ welcome push") && message.contains("trailing space"), message);
  }

  @Test
  void misspeltNamesAreErrors() {
    List<Executable> calls = List.of(
        () -> server.pushes(Map.of("device_tokn", "ab")), () -> server.findings(Map.of("reason", "Unregisterd")),
        () -> server.profile("flaky-530"), () -> server.rule(Map.of("doo", 1)), () -> server.reset("profil"),
        () -> server.device("not/hex").online(), () -> server.verify(Map.of("expct", List.of())),
        () -> server.waitFor(1, Map.of("topik", "a")));
    for (Executable call : calls) {
      ApnsMockException error = assertThrows(ApnsMockException.class, call);
      assertTrue(error.status() >= 400 && error.getMessage().contains("; "), error.getMessage());
    }
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
  void readsAllPages() throws Exception {
    send(server, deviceToken(), TOPIC, "One");
    Push push = server.pushes().get(0);
    String line = server.export(Map.of()).strip();
    String records = LongStream.rangeClosed(1, 1001)
        .mapToObj(seq -> line.replaceFirst("\"seq\":" + push.seq() + ",", "\"seq\":" + seq + ","))
        .collect(Collectors.joining("\n", "", "\n"));
    server.reset();
    server.importRecords(records);
    assertEquals(1001, server.pushes().size());
  }

  @Test
  void importsExport() throws Exception {
    String device = deviceToken();
    send(server, device, TOPIC, "One");
    String records = server.export(Map.of("device_token", device));
    server.reset();
    assertEquals(List.of(), server.pushes());
    server.importRecords(records);
    assertEquals(device, server.pushes().get(0).deviceToken());
  }

  @Test
  void scopeHidesOtherPushes() throws Exception {
    ApnsMockServer first = server.scoped("topic:com.acme.one");
    ApnsMockServer second = server.scoped("topic:com.acme.two");
    send(server, deviceToken(), "com.acme.one", "One");
    send(server, deviceToken(), "com.acme.two", "Two");

    assertEquals(List.of("com.acme.one"), first.pushes().stream().map(Push::topic).toList());
    first.verify(List.of(Map.of("count", 1)));
    first.waitFor(Wait.exactly(1), Map.of());
    first.reset();
    assertEquals(0, first.pushes().size());
    assertEquals(1, second.pushes().size());
    second.assertNothingLost();
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
