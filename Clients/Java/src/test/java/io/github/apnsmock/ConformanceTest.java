package io.github.apnsmock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Runs the conformance vectors of all client libraries, see Clients/Conformance/README.md. */
final class ConformanceTest {
  private static final Path FOLDER = Path.of("..", "Conformance");

  @TestFactory
  Stream<DynamicTest> vectors() throws IOException {
    List<DynamicTest> tests = new ArrayList<>();
    for (String name : List.of("requests.json", "inbox.json")) {
      for (Object item : (List<?>) Json.parse(Files.readString(FOLDER.resolve(name)))) {
        Values vector = new Values(item);
        tests.add(DynamicTest.dynamicTest(vector.string("name"), () -> run(vector)));
      }
    }
    return tests.stream();
  }

  @Test
  void unknownCallNamesCallAndClient() {
    Values vector = new Values(Map.of("call", "subscribe"));
    AssertionError error = assertThrows(UnknownCall.class, () -> call(null, vector));
    assertEquals("the Java client has no call \"subscribe\"", error.getMessage());
  }

  private static void run(Values vector) throws Exception {
    try (FakeServer fake = new FakeServer(vector.list("exchanges"))) {
      String scope = vector.string("scope");
      ApnsMockServer server = scope.isEmpty() ? fake.client : fake.client.scoped(scope);
      Values error = vector.object("error");
      if (error.members().isEmpty()) {
        assertEquals(vector.members().get("result"), call(server, vector));
      } else {
        Throwable thrown = assertThrows(Throwable.class, () -> call(server, vector));
        assertEquals(error.string("text"), thrown.getMessage());
        assertEquals(error.string("kind"), kind(thrown));
      }
      assertEquals(List.of(), fake.problems);
      assertTrue(fake.remaining.isEmpty(), "requests that the client did not make: " + fake.remaining);
    }
  }

  private static String kind(Throwable error) {
    if (error instanceof ApnsMockException client) {
      return client.status() == 0 ? "client" : "request";
    }
    return error instanceof UnknownCall ? "unknown call" : "expectation";
  }

  /** A call of a vector that this client lacks. */
  private static final class UnknownCall extends AssertionError {
    private static final long serialVersionUID = 1L;

    UnknownCall(String call) {
      super("the Java client has no call \"" + call + "\"");
    }
  }

  /** Makes the call of a vector and returns its result as a JSON value. */
  private static Object call(ApnsMockServer server, Values vector) {
    Values arguments = vector.object("arguments");
    Map<String, Object> filter = new HashMap<>(arguments.object("filter").members());
    if (!arguments.string("query").isEmpty()) {
      filter.put("q", arguments.string("query"));
    }
    switch (vector.string("call")) {
      case "reset" -> server.reset(strings(arguments.list("keep")).toArray(String[]::new));
      case "profile" -> {
        if (arguments.members().get("seed") instanceof Number seed) {
          server.profile(arguments.string("reference"), seed.longValue());
        } else {
          server.profile(arguments.string("reference"));
        }
      }
      case "rule" -> {
        Map<String, ?> rule = arguments.object("rule").members();
        if (arguments.members().containsKey("ttl_ms")) {
          server.rule(rule, duration(arguments, "ttl_ms"));
        } else {
          server.rule(rule);
        }
      }
      case "device" -> setDevice(server.device(arguments.string("token")), arguments);
      case "clock_freeze" -> {
        if (arguments.string("now").isEmpty()) {
          server.clock().freeze();
        } else {
          server.clock().freeze(Instant.parse(arguments.string("now")));
        }
      }
      case "clock_advance" -> server.clock().advance(duration(arguments, "by_ms"));
      case "clock_real" -> server.clock().real();
      case "pushes" -> {
        return seqs(server.pushes(filter));
      }
      case "wait" -> {
        return seqs(server.waitFor(wait(arguments), filter));
      }
      case "verify" -> {
        if (arguments.members().containsKey("document")) {
          server.verify(arguments.object("document").members());
        } else {
          server.verify(arguments.list("expectations").stream().map(item -> new Values(item).members()).toList());
        }
      }
      case "assert_nothing_lost" -> server.assertNothingLost();
      case "check" -> server.check(
          arguments.isTrue("fail_on_findings") ? List.of("all") : strings(arguments.list("fail_on_findings")),
          arguments.isTrue("fail_on_rejected"));
      case "findings" -> {
        return server.findings(filter).stream().map(Finding::name).toList();
      }
      case "report" -> {
        return server.report();
      }
      case "export" -> {
        return server.export(filter);
      }
      case "import" -> server.importRecords(arguments.string("text"));
      default -> throw new UnknownCall(vector.string("call"));
    }
    return null;
  }

  private static void setDevice(ApnsMockServer.Device device, Values arguments) {
    Instant since = arguments.string("since").isEmpty() ? null : Instant.parse(arguments.string("since"));
    switch (arguments.string("state")) {
      case "online" -> device.online();
      case "unregistered" -> {
        if (since == null) {
          device.unregistered();
        } else {
          device.unregistered(since);
        }
      }
      default -> {
        if (since == null) {
          device.expired();
        } else {
          device.expired(since);
        }
      }
    }
  }

  private static Wait wait(Values arguments) {
    Values count = arguments.object("count");
    Wait wait = count.members().containsKey("exactly")
        ? Wait.exactly((int) count.number("exactly")) : Wait.atLeast((int) count.number("at_least"));
    if (arguments.members().containsKey("timeout_ms")) {
      wait = wait.within(duration(arguments, "timeout_ms"));
    }
    return arguments.members().containsKey("settle_ms") ? wait.settle(duration(arguments, "settle_ms")) : wait;
  }

  private static Duration duration(Values arguments, String name) {
    return Duration.ofMillis(arguments.number(name));
  }

  private static List<String> strings(List<?> items) {
    return items.stream().map(String::valueOf).toList();
  }

  private static List<Object> seqs(List<Push> pushes) {
    return pushes.stream().map(push -> Json.parse(Long.toString(push.seq()))).toList();
  }

  /** Responds to each request with the response of the next exchange, and to a request of the status by itself. */
  private static final class FakeServer implements AutoCloseable {
    final ApnsMockServer client;
    final Deque<Values> remaining = new ArrayDeque<>();
    final List<String> problems = new ArrayList<>();
    private final HttpServer server;

    FakeServer(List<?> exchanges) throws IOException {
      exchanges.forEach(exchange -> remaining.add(new Values(exchange)));
      server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
      server.createContext("/", this::handle);
      server.start();
      String address = "127.0.0.1:" + server.getAddress().getPort();
      client = ApnsMockServer.fromEnvironment(Map.of("APNS_MOCK_ADMIN", address, "APNS_MOCK_APNS", address));
    }

    private void handle(HttpExchange exchange) throws IOException {
      String text = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      String target = exchange.getRequestMethod() + " " + exchange.getRequestURI();
      if (target.equals("GET /api/v1/status")) {
        respond(exchange, 200, Json.write(Map.of("version", ApnsMockServer.VERSION)));
        return;
      }
      Values next = remaining.poll();
      if (next == null) {
        problems.add("unexpected request " + target);
        respond(exchange, 599, "");
        return;
      }
      Map<String, Object> wanted = next.object("request").members();
      Map<String, Object> found = new HashMap<>(Map.of(
          "method", exchange.getRequestMethod(), "path", exchange.getRequestURI().getRawPath()));
      if (exchange.getRequestURI().getRawQuery() != null) {
        found.put("query", query(exchange.getRequestURI().getRawQuery()));
      }
      if (!text.isEmpty()) {
        found.put(wanted.containsKey("text") ? "text" : "body", wanted.containsKey("text") ? text : Json.parse(text));
      }
      if (!found.equals(wanted)) {
        problems.add("wanted " + wanted + ", found " + found);
      }
      Values response = next.object("response");
      boolean isText = response.members().containsKey("text");
      respond(exchange, (int) response.number("status"),
          isText ? response.string("text") : Json.write(response.members().get("body")));
    }

    private static Map<String, List<Object>> query(String text) {
      Map<String, List<Object>> query = new TreeMap<>();
      for (String pair : text.split("&")) {
        String[] parts = pair.split("=", 2);
        query.computeIfAbsent(decoded(parts[0]), name -> new ArrayList<>()).add(decoded(parts[1]));
      }
      return query;
    }

    private static String decoded(String text) {
      return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    private static void respond(HttpExchange exchange, int status, String text) throws IOException {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
      exchange.getResponseBody().write(bytes);
      exchange.close();
    }

    @Override
    public void close() {
      server.stop(0);
    }
  }
}
