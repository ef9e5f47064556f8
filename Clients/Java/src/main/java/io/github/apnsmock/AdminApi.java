package io.github.apnsmock;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The HTTP API of a server. */
final class AdminApi {
  static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(30);
  /** The time for which the server waits at most. */
  static final Duration MAX_WAIT = Duration.ofMinutes(5);

  // The connection of a process ends before its exit status is known.
  private static final Duration EXIT_PATIENCE = Duration.ofSeconds(1);

  private final URI url;
  private final String token;
  private final ServerProcess process;
  private final HttpClient http = HttpClient.newBuilder()
      .version(HttpClient.Version.HTTP_1_1).proxy(HttpClient.Builder.NO_PROXY).build();

  /**
   * Creates the API of a server.
   *
   * @param token the admin token; empty without one
   * @param process the process of the server, or null if it was not started here
   */
  AdminApi(URI url, String token, ServerProcess process) {
    this.url = url;
    this.token = token;
    this.process = process;
  }

  URI url() {
    return url;
  }

  /** Sends a GET request and returns the JSON object of the response. */
  Values get(String path, Map<String, ?> parameters, Duration timeout) {
    return new Values(parse(path, getText(path, parameters, timeout)));
  }

  /** Sends a GET request and returns the body of the response. */
  String getText(String path, Map<String, ?> parameters, Duration timeout) {
    return send("GET", path + query(parameters), BodyPublishers.noBody(), "", timeout);
  }

  /** Sends a value as JSON and returns the JSON object of the response. */
  Values send(String method, String path, Object body, Duration timeout) {
    String text = send(method, path, BodyPublishers.ofString(Json.write(body)), "application/json", timeout);
    return new Values(text.isEmpty() ? null : parse(path, text));
  }

  /** Sends lines of JSON. */
  void sendLines(String path, String lines) {
    send("POST", path, BodyPublishers.ofString(lines), "application/x-ndjson", REQUEST_TIMEOUT);
  }

  private static Object parse(String path, String text) {
    try {
      return Json.parse(text);
    } catch (IllegalArgumentException error) {
      throw new ApnsMockException("The response to " + path + " is not valid: " + error.getMessage(), error);
    }
  }

  /** Sends a request and returns the body of the response. Status 412 is not an error: its body is a report. */
  private String send(String method, String path, BodyPublisher body, String contentType, Duration timeout) {
    if (process != null && process.hasExited(Duration.ZERO)) {
      throw process.exitError();
    }
    HttpRequest.Builder request = HttpRequest.newBuilder(url.resolve(path)).method(method, body).timeout(timeout);
    if (!contentType.isEmpty()) {
      request.header("content-type", contentType);
    }
    if (!token.isEmpty()) {
      request.header("authorization", "Bearer " + token);
    }
    HttpResponse<String> response;
    try {
      response = http.send(request.build(), BodyHandlers.ofString());
    } catch (IOException error) {
      if (process != null && process.hasExited(EXIT_PATIENCE)) {
        throw process.exitError();
      }
      throw new ApnsMockException(
          "The apns-mock server at " + url + " did not respond: " + error + "; check that it is running.", error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new ApnsMockException("The thread was interrupted during " + method + " " + path + ".", error);
    }
    if (response.statusCode() < 300 || response.statusCode() == 412) {
      return response.body();
    }
    throw problem(method + " " + path.split("\\?", 2)[0], response);
  }

  private static ApnsMockException problem(String request, HttpResponse<String> response) {
    String text = response.body();
    String explanation = text.isEmpty() ? "no explanation" : text.substring(0, Math.min(text.length(), 200));
    try {
      Values problem = new Values(Json.parse(text));
      if (!problem.string("detail").isEmpty()) {
        List<String> lines = new ArrayList<>(List.of(sentence(problem, "detail")));
        if (problem.list("problems").size() > 1) {
          problem.list("problems").forEach(item -> lines.add(sentence(new Values(item), "message")));
        }
        explanation = String.join("\n  ", lines);
      }
    } catch (IllegalArgumentException notJson) {
      // The text is the explanation.
    }
    String message = "apns-mock responded with %d to %s: %s".formatted(response.statusCode(), request, explanation);
    return new ApnsMockException(message, response.statusCode(), null);
  }

  private static String sentence(Values problem, String member) {
    String hint = problem.string("hint");
    return hint.isEmpty() ? problem.string(member) : problem.string(member) + ". " + hint;
  }

  private static String query(Map<String, ?> parameters) {
    List<String> pairs = new ArrayList<>();
    parameters.forEach((name, value) -> {
      Iterable<?> items = value instanceof Iterable<?> list ? list : List.of(value == null ? Void.class : value);
      int count = pairs.size();
      for (Object item : items) {
        if (!(item instanceof String || item instanceof Number || item instanceof Boolean)) {
          throw invalidFilter(name, value);
        }
        pairs.add(encode(name) + "=" + encode(item.toString()));
      }
      if (pairs.size() == count) {
        // An empty list would be no condition at all.
        throw invalidFilter(name, value);
      }
    });
    return pairs.isEmpty() ? "" : "?" + String.join("&", pairs);
  }

  private static IllegalArgumentException invalidFilter(String name, Object value) {
    return new IllegalArgumentException("The filter " + name + " has the value " + value
        + "; use a string, a number, a boolean, or a list of these that is not empty.");
  }

  /** Returns a text as it appears in a parameter or a path segment. */
  static String encode(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }
}
