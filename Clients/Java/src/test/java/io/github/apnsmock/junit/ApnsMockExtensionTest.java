package io.github.apnsmock.junit;

import static io.github.apnsmock.ApnsMockServer.TOPIC;
import static io.github.apnsmock.ApnsMockServer.deviceToken;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import io.github.apnsmock.ApnsMockServer;
import io.github.apnsmock.TestProvider;
import io.github.apnsmock.Wait;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** Runs the classes below in a JUnit of their own and checks its results. */
final class ApnsMockExtensionTest {
  private static final Set<Object> SERVERS = ConcurrentHashMap.newKeySet();

  private record Run(TestExecutionSummary summary, String stderr) {
    String failure() {
      assertEquals(1, summary.getTotalFailureCount(), stderr);
      return summary.getFailures().get(0).getException().getMessage();
    }
  }

  private static Run run(DiscoverySelector... selectors) {
    LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request().selectors(selectors)
        .configurationParameter("junit.jupiter.execution.parallel.enabled", "true")
        .build();
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    ByteArrayOutputStream stderr = new ByteArrayOutputStream();
    PrintStream previous = System.err;
    System.setErr(new PrintStream(stderr, true, StandardCharsets.UTF_8));
    try {
      LauncherFactory.create().execute(request, listener);
    } finally {
      System.setErr(previous);
    }
    return new Run(listener.getSummary(), stderr.toString(StandardCharsets.UTF_8));
  }

  private static DiscoverySelector method(String name) {
    return selectMethod(Failing.class, name, ApnsMockServer.class.getName());
  }

  @Test
  void oneServerIsResetBeforeEachTest() {
    SERVERS.clear();
    Run run = run(selectClass(FirstSharing.class), selectClass(SecondSharing.class));
    assertEquals(List.of(), run.summary().getFailures().stream().map(TestExecutionSummary.Failure::getException).toList());
    assertEquals(7, run.summary().getTestsSucceededCount());
    assertEquals(1, SERVERS.size());
    assertEquals("", run.stderr());
  }

  @Test
  void failedTestPrintsInbox() {
    Run run = run(method("verification"));
    assertTrue(run.failure().contains("✗ expectation 1"), run.failure());
    assertTrue(run.stderr().contains("failed. apns-mock: seed 7, profile flaky-503?rate=1, 1 push\n"), run.stderr());
    assertTrue(run.stderr().contains("  attempt 1  503 ServiceUnavailable  rule flaky"), run.stderr());
  }

  @Test
  void findingsFailTest() {
    Run run = run(method("findings"));
    assertTrue(run.failure().startsWith("finding retried-410, push "), run.failure());
    assertTrue(run.stderr().contains("2 pushes"), run.stderr());
    assertTrue(run(method("namedFindings")).failure().startsWith("finding retried-410, push "));
    assertEquals(1, run(method("otherFindings")).summary().getTestsSucceededCount());
  }

  @Test
  void rejectedPushFailsTest() {
    String message = run(method("rejected")).failure();
    assertTrue(message.startsWith("rejected with 410 Unregistered, push "), message);
  }

  @Test
  void unknownFindingFailsTest() {
    String message = run(method("unknownFinding")).failure();
    assertTrue(message.contains("Did you mean hot-retry?"), message);
  }

  @Test
  void unknownProfileFailsTest() {
    assertTrue(run(method("unknownProfile")).failure().contains("flaky-530"));
  }

  @Test
  void serverThatCannotStartFailsTest() {
    assertTrue(run(method("unknownArgument")).failure().contains("exited with status 2 while starting"));
  }

  @Test
  void deadServerFailsOnlyItsTest() {
    Run run = run(method("stopped"), method("passes"));
    assertTrue(run.failure().contains("exited with status 0"), run.failure());
    assertEquals(1, run.summary().getTestsSucceededCount());
    assertTrue(run.stderr().isEmpty() || run.stderr().contains("exited with status 0"), run.stderr());
  }

  @Test
  void testsThatDoNotRunAreRecordedAsSkipped() {
    Run run = run(selectClass(Skipping.class));
    assertEquals(List.of(), run.summary().getFailures().stream().map(TestExecutionSummary.Failure::getException).toList());
    assertEquals(1, run.summary().getTestsSucceededCount());
  }

  private static void share(ApnsMockServer server) throws Exception {
    SERVERS.add(server.settings());
    assertEquals(List.of(), server.pushes());
    TestProvider.send(server, deviceToken(), TOPIC, "One");
    server.waitFor(Wait.exactly(1).settle(Duration.ofMillis(20)), Map.of());
  }

  @ApnsMock
  @Execution(ExecutionMode.CONCURRENT)
  static final class FirstSharing {
    @Test
    void first(ApnsMockServer server) throws Exception {
      share(server);
    }

    @Test
    void second(ApnsMockServer server) throws Exception {
      share(server);
    }

    @Test
    @ApnsMock(profile = "flaky-503?rate=1")
    void profileOfMethod(ApnsMockServer server) throws Exception {
      assertEquals(503, TestProvider.send(server, deviceToken(), TOPIC, "One"));
    }

    @Nested
    final class Inner {
      @Test
      void third(ApnsMockServer server) throws Exception {
        share(server);
      }
    }
  }

  @Execution(ExecutionMode.CONCURRENT)
  static final class SecondSharing {
    @Test
    @ApnsMock
    void first(ApnsMockServer server) throws Exception {
      share(server);
    }

    @Test
    @ApnsMock
    void second(ApnsMockServer server) throws Exception {
      share(server);
    }

    @Test
    @ApnsMock(seed = 7)
    void seed(ApnsMockServer server) {
      assertTrue(server.report().startsWith("apns-mock: seed 7, profile healthy, 0 pushes"));
    }
  }

  @ApnsMock(arguments = {"--environment", "production"})
  @TestMethodOrder(MethodOrderer.MethodName.class)
  static final class Skipping {
    @Test
    @Disabled("not today")
    void a() {}

    @Test
    void b() {
      Assumptions.abort("no network");
    }

    @Test
    @Disabled
    void c() {}

    @Test
    void d(ApnsMockServer server) throws Exception {
      HttpRequest request = HttpRequest.newBuilder(server.adminUrl().resolve("/api/v1/runs/r1")).build();
      String text = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
      String value = "(null|\"[^\"]*\")";
      Pattern test = Pattern.compile("\"name\":\"(Skipping.\\w)[^{]*?\"outcome\":" + value + "[^{]*?\"message\":" + value);
      List<String> found =
          test.matcher(text).results().map(one -> one.group(1) + " " + one.group(2) + " " + one.group(3)).toList();
      String skipped = " \"skipped\" ";
      assertEquals(List.of(
          "Skipping.a" + skipped + "\"not today\"", "Skipping.b" + skipped + "\"no network\"",
          "Skipping.c" + skipped + "\"void io.github.apnsmock.junit.ApnsMockExtensionTest$Skipping.c() is @Disabled\"",
          "Skipping.d null null"), found, text);
    }
  }

  static final class Failing {
    @Test
    @ApnsMock(profile = "flaky-503?rate=1", seed = 7)
    void verification(ApnsMockServer server) throws Exception {
      TestProvider.send(server, deviceToken(), TOPIC, "One");
      server.verify(List.of(Map.of("outcome", "accepted")));
    }

    @Test
    @ApnsMock(failOnFindings = "all")
    void findings(ApnsMockServer server) throws Exception {
      sendTwiceToUnregistered(server);
    }

    @Test
    @ApnsMock(failOnFindings = {"hot-retry", "retried-410"})
    void namedFindings(ApnsMockServer server) throws Exception {
      sendTwiceToUnregistered(server);
    }

    @Test
    @ApnsMock(failOnFindings = "hot-retry")
    void otherFindings(ApnsMockServer server) throws Exception {
      sendTwiceToUnregistered(server);
    }

    @Test
    @ApnsMock(failOnRejected = true)
    void rejected(ApnsMockServer server) throws Exception {
      sendTwiceToUnregistered(server);
    }

    @Test
    @ApnsMock(failOnFindings = "hot-retri")
    void unknownFinding(ApnsMockServer server) {}

    private static void sendTwiceToUnregistered(ApnsMockServer server) throws Exception {
      String device = deviceToken();
      server.device(device).unregistered();
      TestProvider.send(server, device, TOPIC, "One");
      TestProvider.send(server, device, TOPIC, "One");
    }

    @Test
    @ApnsMock(profile = "flaky-530")
    void unknownProfile(ApnsMockServer server) {}

    @Test
    @ApnsMock(arguments = "--unknown")
    void unknownArgument(ApnsMockServer server) {}

    @Test
    @ApnsMock(failOnFindings = "all")
    void stopped(ApnsMockServer server) {
      server.close();
    }

    @Test
    @ExtendWith(ApnsMockExtension.class)
    void passes(ApnsMockServer server) {
      server.assertNothingLost();
    }
  }
}
