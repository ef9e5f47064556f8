package io.github.apnsmock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
final class ServerProcessTest {
  @TempDir
  private Path folder;

  private static void assertError(Executable code, String... parts) {
    assertMessage(assertThrows(ApnsMockException.class, code), parts);
  }

  private static void assertMessage(Throwable error, String... parts) {
    for (String part : parts) {
      assertTrue(error.getMessage().contains(part), () -> part + " is missing in: " + error.getMessage());
    }
  }

  private Executable starting(Path program) {
    Map<String, String> environment = Map.of("APNS_MOCK_BINARY", program.toString());
    return () -> ApnsMockServer.start(environment, List.of(), Duration.ofMillis(500));
  }

  private Path program(String content) throws IOException {
    Path program = Files.writeString(folder.resolve("apns-mock"), content, StandardCharsets.ISO_8859_1);
    assertTrue(program.toFile().setExecutable(true));
    return program;
  }

  @Test
  void missingProgram() {
    assertError(starting(folder.resolve("absent")), "APNS_MOCK_BINARY is ", "which is not a file", "unset it");
    assertError(starting(folder), "which is not a file");
    assertError(
        () -> ServerProcess.findProgram(Map.of("PATH", folder.toString())), "was not found", "set APNS_MOCK_BINARY");
    assertError(() -> ServerProcess.findProgram(Map.of()), "was not found");
  }

  @Test
  void programInPath() throws IOException {
    Path program = program("");
    assertEquals(program, ServerProcess.findProgram(Map.of("PATH", ":/absent:" + folder)));
  }

  @Test
  void programOfOtherArchitecture() throws IOException {
    String header = "\177ELF\2\1\1" + "\0".repeat(11); // then e_machine: 40 is 32-bit ARM
    assertError(starting(program(header + "\50\0")), "Cannot run ", "another system or architecture",
        "set APNS_MOCK_BINARY");
    Path data = program("");
    assertTrue(data.toFile().setExecutable(false));
    assertError(starting(data), "Cannot run ", "Permission denied");
  }

  @Test
  void programThatExits() throws IOException {
    assertError(starting(program("#!/bin/sh\necho 'error: unknown flag' >&2\nexit 2\n")),
        "exited with status 2 while starting because its configuration is not valid", "error: unknown flag");
  }

  @Test
  void programThatIsNeverReady() throws IOException {
    assertError(starting(program("#!/bin/sh\necho starting >&2\ncat\n")), "was not ready", "starting");
  }

  @Test
  void portTaken() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      assertError(() -> ApnsMockServer.start("--apns", "127.0.0.1:" + socket.getLocalPort()),
          "exited with status 6 while starting because a port is in use");
    }
  }

  @Test
  void invalidArgument() {
    assertError(() -> ApnsMockServer.start("--profile", "flaky-530"), "exited with status 2", "flaky-530");
  }

  @Test
  void serverKilledInMidTest() throws InterruptedException {
    try (ApnsMockServer server = ApnsMockServer.start()) {
      CompletableFuture<List<Push>> waiting = CompletableFuture.supplyAsync(
          () -> server.waitFor(Wait.atLeast(1).within(Duration.ofMinutes(1)), Map.of()));
      Process process = server.process().process();
      process.destroyForcibly();
      String wanted = "The apns-mock server (pid " + process.pid() + ") exited with status 137; its last output:";
      assertMessage(assertThrows(ExecutionException.class, waiting::get).getCause(), wanted);
      assertError(server::reset, wanted);
      assertFalse(server.isRunning());
    }
  }

  @Test
  void closeRemovesFolder() {
    ApnsMockServer server = ApnsMockServer.start();
    Path certificates = server.settings().ca().getParent();
    server.close();
    server.close();
    assertFalse(Files.exists(certificates));
    assertError(server::pushes, "exited with status 0");
  }

  /** Starts a server, prints its port file and ends without stopping it: at once, or, with an argument, as usual. */
  static final class Abandon {
    public static void main(String[] arguments) {
      System.out.println(ApnsMockServer.start().process().portFile());
      if (arguments.length == 0) {
        Runtime.getRuntime().halt(1);
      }
    }
  }

  /** Runs {@link Abandon} and returns the path that it prints. */
  private static Path abandonedPortFile(String... arguments) throws Exception {
    Stream<String> command = Stream.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp", classPath(), Abandon.class.getName());
    Process child = new ProcessBuilder(Stream.concat(command, Stream.of(arguments)).toList())
        .redirectError(ProcessBuilder.Redirect.INHERIT).start();
    String output = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    child.waitFor();
    assertTrue(output.endsWith("ports.json"), output);
    return Path.of(output);
  }

  @Test
  void folderOfAServerThatIsNotClosedIsRemoved() throws Exception {
    assertFalse(Files.exists(abandonedPortFile("usual").getParent()), "It contains private keys.");
  }

  private static String classPath() {
    return Stream.of(ApnsMockServer.class, Abandon.class)
        .map(type -> type.getProtectionDomain().getCodeSource().getLocation().getPath())
        .collect(Collectors.joining(File.pathSeparator));
  }

  @Test
  void serverEndsWithThisProcess() throws Exception {
    Path portFile = abandonedPortFile();
    // The server removes its port file when it ends.
    long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
    while (Files.exists(portFile) && System.nanoTime() < deadline) {
      Thread.sleep(10);
    }
    assertFalse(Files.exists(portFile), "The server still runs.");
    try (var files = Files.walk(portFile.getParent())) {
      files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
    }
  }

  @Test
  void incompatibleVersion() throws IOException {
    for (String version : List.of("0.2.0", "1.1.0", "", "01", "0.1.99", ApnsMockServer.VERSION)) {
      HttpServer other = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
      byte[] body = Json.write(Map.of(
          "version", version, "addresses", Map.of("apns", List.of(Map.of("host", "::1", "port", 1)))))
          .getBytes(StandardCharsets.UTF_8);
      other.createContext("/", exchange -> {
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
      });
      other.start();
      try {
        String admin = "http://127.0.0.1:" + other.getAddress().getPort() + "/";
        Map<String, String> environment = Map.of("APNS_MOCK_ADMIN", admin);
        if (version.startsWith("0.1.")) {
          assertEquals("https://[::1]:1", ApnsMockServer.fromEnvironment(environment).settings().url().toString());
        } else {
          assertError(() -> ApnsMockServer.fromEnvironment(environment), "has version " + version + " ",
              "install apns-mock 0.1.x");
        }
      } finally {
        other.stop(0);
      }
    }
  }

  @Test
  void environment() {
    assertError(() -> ApnsMockServer.fromEnvironment(Map.of()),
        "Neither APNS_MOCK_ADMIN nor APNS_MOCK_PORT_FILE is set", "apns-mock exec");
    assertError(() -> ApnsMockServer.fromEnvironment(Map.of("APNS_MOCK_ADMIN", "127.0.0.1")), "set it to HOST:PORT");
    assertError(() -> ApnsMockServer.fromEnvironment(Map.of("APNS_MOCK_ADMIN", "127.0.0.1:1")), "did not respond");
    String absent = folder.resolve("absent").toString();
    assertError(() -> ApnsMockServer.fromEnvironment(Map.of("APNS_MOCK_PORT_FILE", absent)), "port file " + absent);

    try (ApnsMockServer server = ApnsMockServer.start("--admin-token", "secret")) {
      Map<String, String> exec = new HashMap<>(Map.of("APNS_MOCK_PORT_FILE", server.process().portFile().toString()));
      ApnsMockServer same = ApnsMockServer.fromEnvironment(exec);
      assertEquals(server.settings(), same.settings());
      same.close();
      assertTrue(server.isRunning());
      String admin = server.adminUrl().getAuthority();
      assertError(() -> ApnsMockServer.fromEnvironment(Map.of("APNS_MOCK_ADMIN", admin)), "responded with 401");
      ApnsMockServer.fromEnvironment(Map.of("APNS_MOCK_ADMIN", admin, "APNS_MOCK_ADMIN_TOKEN", "secret")).reset();
      exec.put("APNS_MOCK_APNS", "[::1]:7,127.0.0.1:8");
      assertEquals("https://[::1]:7", ApnsMockServer.fromEnvironment(exec).settings().url().toString());
    }
  }
}
