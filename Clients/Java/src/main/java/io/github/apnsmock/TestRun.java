package io.github.apnsmock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Records the tests of a process on a server: which pushes belong to which test, and how it ended. Under {@code apns-mock
 * exec} it is the run that {@code exec} has started and ends. A failure to record never fails a test.
 */
public final class TestRun {
  /** For each label of a run the variables of the usual CI systems. */
  private static final Map<String, List<String>> CI_VARIABLES = Map.of(
      "commit", List.of("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT", "CIRCLE_SHA1"),
      "branch", List.of("GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "GIT_BRANCH", "BUILDKITE_BRANCH", "CIRCLE_BRANCH"),
      "build", List.of("GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_NUMBER", "BUILDKITE_BUILD_NUMBER", "CIRCLE_BUILD_NUM"),
      "job", List.of("GITHUB_JOB", "CI_JOB_NAME", "JOB_NAME", "CIRCLE_JOB"));

  private final AdminApi api;
  private final boolean isOwn;
  private String id = "";

  private TestRun(AdminApi api, boolean isOwn) {
    this.api = api;
    this.isOwn = isOwn;
  }

  static TestRun start(AdminApi api, boolean isConnected, String name) {
    String joined = System.getenv("APNS_MOCK_RUN");
    TestRun run = new TestRun(api, !isConnected || joined == null || joined.isEmpty());
    if (!run.isOwn) {
      run.id = joined;
      return run;
    }
    Map<String, String> labels = new LinkedHashMap<>();
    CI_VARIABLES.forEach((label, names) -> names.stream().map(System::getenv)
        .filter(value -> value != null && !value.isEmpty()).findFirst().ifPresent(value -> labels.put(label, value)));
    Map<String, Object> body = new LinkedHashMap<>(Map.of("name", name, "labels", labels));
    // On a server that others use too, the seed is not that of these tests.
    if (!isConnected) {
      command(api).ifPresent(command -> body.put("command", command));
    }
    Values started = run.send("POST", "", body);
    run.id = started == null ? "" : started.string("id");
    return run;
  }

  /** Returns the command that repeats the tests of this process with the server's seed. */
  private static Optional<String> command(AdminApi api) {
    try {
      long seed = api.get("/api/v1/status", Map.of(), AdminApi.REQUEST_TIMEOUT).number("seed");
      // Gradle sets this property in the JVM of its tests.
      String tests = System.getProperty("org.gradle.test.worker") == null ? "mvn test" : "gradle test --rerun";
      return Optional.of("APNS_MOCK_SEED=" + seed + " " + tests);
    } catch (ApnsMockException error) {
      return Optional.empty();
    }
  }

  /**
   * Starts a test.
   *
   * @return its number, or 0 if it could not be recorded
   */
  public long startTest(String name) {
    Values test = id.isEmpty() ? null : send("POST", "/" + AdminApi.encode(id) + "/tests", Map.of("name", name));
    return test == null ? 0 : test.number("number");
  }

  /** Ends a test; the message says why it has failed. */
  public void endTest(long number, String outcome, String message) {
    if (number > 0) {
      send("PATCH", "/" + AdminApi.encode(id) + "/tests/" + number,
          message == null ? Map.of("outcome", outcome) : Map.of("outcome", outcome, "message", message));
    }
  }

  /** Ends the run, unless {@code exec} will do it, and writes its report to the folder that APNS_MOCK_REPORTS names. */
  public void end() {
    if (!isOwn || id.isEmpty()) {
      return;
    }
    send("PATCH", "/" + AdminApi.encode(id), Map.of("ended", true));
    String folder = System.getenv("APNS_MOCK_REPORTS");
    if (folder == null || folder.isEmpty()) {
      return;
    }
    try {
      String path = "/api/v1/runs/" + AdminApi.encode(id) + "/report";
      String report = api.getText(path, Map.of(), AdminApi.REQUEST_TIMEOUT);
      Files.createDirectories(Path.of(folder));
      String name = "junit-" + ProcessHandle.current().pid() + "-" + System.nanoTime() + ".html";
      Files.writeString(createPrivateFile(Path.of(folder, name)), report);
    } catch (ApnsMockException | IOException error) {
      System.err.println("apns-mock: the report could not be written: " + error.getMessage());
    }
  }

  /** Creates a file that only this user can read, because reports contain payloads and device tokens. */
  private static Path createPrivateFile(Path path) throws IOException {
    if (!path.getFileSystem().supportedFileAttributeViews().contains("posix")) {
      return Files.createFile(path); // On Windows the folder says who can read it.
    }
    return Files.createFile(path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
  }

  private Values send(String method, String path, Map<String, ?> body) {
    try {
      return api.send(method, "/api/v1/runs" + path, body, AdminApi.REQUEST_TIMEOUT);
    } catch (ApnsMockException error) {
      return null; // The test itself fails if the server has exited.
    }
  }
}
