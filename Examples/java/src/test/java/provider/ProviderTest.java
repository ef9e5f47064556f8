package provider;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.apnsmock.ApnsMockServer;
import io.github.apnsmock.Push;
import io.github.apnsmock.Settings;
import io.github.apnsmock.junit.ApnsMock;
import java.nio.file.Files;
import java.time.Clock;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class ProviderTest {
  private static final Clock MACHINE = Clock.systemUTC();

  private ApnsMockServer server;
  private Provider provider;

  @BeforeEach
  void createProvider(ApnsMockServer server) throws Exception {
    this.server = server;
    Settings settings = server.settings();
    provider = new Provider(settings.url(), Files.readString(settings.key()), settings.keyId(), settings.teamId(),
        server.httpClient(), Duration.ofMillis(120));
  }

  /** Registers device tokens. They are the same in each run, because the draws of a profile depend on them. */
  private List<String> register(int count) {
    List<String> devices = IntStream.rangeClosed(1, count).mapToObj("%064x"::formatted).toList();
    devices.forEach(provider::register);
    return devices;
  }

  /** Sends a push to each device token and returns the statuses of the responses. */
  private List<Integer> send(List<String> devices, int workers, String title) throws Exception {
    String payload = "{\"aps\":{\"alert\":{\"title\":\"" + title + "\"}}}";
    Queue<Provider.Notification> queue = devices.stream()
        .map(device -> new Provider.Notification(device, ApnsMockServer.TOPIC, payload))
        .collect(Collectors.toCollection(ConcurrentLinkedQueue::new));
    return provider.run(queue, workers).stream().map(Provider.Result::status).toList();
  }

  @Test
  @ApnsMock(profile = "healthy", failOnFindings = "all")
  void healthy() throws Exception {
    assertEquals(Collections.nCopies(10, 200), send(register(10), 1, "Welcome"));

    Map<String, ?> match = Map.of("payload", Map.of("/aps/alert/title", "Welcome"));
    server.verify(Map.of(
        "expect", List.of(Map.of("match", match, "count", 10, "outcome", "accepted")), "no_others", true));
    server.assertNothingLost();
  }

  @Test
  @ApnsMock(profile = "flaky-503?rate=0.3&streak=2", seed = 7, failOnFindings = "all")
  void unavailableServiceIsRetriedWithBackoff() throws Exception {
    assertEquals(Collections.nCopies(20, 200), send(register(20), 4, "News"));

    Map<String, ?> retries =
        Map.of("min", 2, "max", 2, "min_first_delay", "100ms", "growing", true, "finally", "accepted");
    server.verify(List.of(Map.of("name", "retry policy", "match", Map.of("rule", "flaky"), "retries", retries)));
    server.assertNothingLost();
  }

  @Test
  @ApnsMock(profile = "unregistered-410?rate=1", failOnFindings = "all")
  void unregisteredDevicesAreRemoved() throws Exception {
    // They were registered before the time in the response, which is 24 hours ago.
    provider.setClock(Clock.offset(MACHINE, Duration.ofHours(-25)));
    List<String> devices = register(5);
    provider.setClock(MACHINE);

    assertEquals(Collections.nCopies(5, 410), send(devices, 1, "One"));
    assertEquals(List.of(), send(devices, 1, "Two"));

    server.verify(List.of(Map.of("match", Map.of("reason", "Unregistered"), "count", 5)));
    server.assertNothingLost();
  }

  @Test
  @ApnsMock(profile = "unregistered-410?rate=1")
  void deviceThatRegisteredAgainIsKept() throws Exception {
    List<String> devices = register(1);
    assertEquals(List.of(410), send(devices, 1, "One"));
    assertTrue(provider.isRegistered(devices.get(0)));
  }

  @Test
  @ApnsMock(failOnFindings = "all")
  void badDeviceTokenIsRemoved() throws Exception {
    provider.register("not-a-token");
    assertEquals(List.of(400), send(List.of("not-a-token"), 1, "One"));
    assertFalse(provider.isRegistered("not-a-token"));
    server.verify(List.of(Map.of("match", Map.of("reason", "BadDeviceToken"), "count", 1)));
  }

  @Test
  @ApnsMock(profile = "expired-jwt-403?max_age=30s", failOnFindings = "all")
  void expiredProviderTokenIsReplaced() throws Exception {
    List<String> devices = register(1);
    send(devices, 1, "One");

    server.clock().advance(Duration.ofSeconds(31));
    provider.setClock(Clock.offset(MACHINE, Duration.ofSeconds(31)));
    assertEquals(List.of(200), send(devices, 1, "Two"));

    server.verify(List.of(Map.of(
        "match", Map.of("reason", "ExpiredProviderToken"), "retries", Map.of("max", 1, "finally", "accepted"))));
    server.assertNothingLost();
  }

  @Test
  @ApnsMock(failOnFindings = "all")
  void providerTokenIsRenewedBeforeItExpires() throws Exception {
    List<String> devices = register(3);
    send(devices, 1, "One");

    server.clock().advance(Duration.ofMinutes(51));
    provider.setClock(Clock.offset(MACHINE, Duration.ofMinutes(51)));
    send(devices, 1, "Two");

    List<Push> pushes = server.pushes(Map.of("status", 200));
    assertEquals(2, pushes.stream().map(push -> push.header("authorization")).distinct().count());
  }

  /**
   * Before version 24, the JDK's client also gives up requests that the server did process (JDK-8335181). The provider
   * sends such a push again with the same {@code apns-id}, so it can be accepted twice.
   */
  @Test
  @ApnsMock(profile = "goaway-storm?streams=5")
  void pushesAfterGoAwayAreSentAgain() throws Exception {
    assertEquals(Collections.nCopies(20, 200), send(register(20), 4, "Sale"));

    server.verify(List.of(
        Map.of("name", "GOAWAY was sent", "match", Map.of("rule", "goaway"), "count", Map.of("at_least", 2)),
        Map.of("name", "each push was accepted", "outcome", "accepted", "count", Map.of("at_least", 20))));
    server.assertNothingLost();
  }
}
