package io.github.apnsmock;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A running apns-mock server, the child of this process. */
final class ServerProcess implements AutoCloseable {
  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(10);
  private static final Duration POLL_INTERVAL = Duration.ofMillis(10);
  private static final int MAX_STDERR_LINES = 10;
  /** The folders of servers that are not closed. They contain private keys, so they are removed when the JVM exits. */
  private static final Set<Path> FOLDERS = ConcurrentHashMap.newKeySet();

  static {
    Runtime.getRuntime().addShutdownHook(new Thread(ServerProcess::deleteFolders, "apns-mock folders"));
  }

  private final Process process;
  private final Path folder;
  private final Deque<String> stderr = new ArrayDeque<>();
  private final Thread stderrReader;

  private ServerProcess(Process process, Path folder) {
    this.process = process;
    this.folder = folder;
    stderrReader = new Thread(this::readStderr, "apns-mock stderr");
    stderrReader.setDaemon(true);
    stderrReader.start();
  }

  /** Starts the program with free ports and waits until it is ready. */
  static ServerProcess start(Map<String, String> environment, List<String> arguments, Duration timeout) {
    Path program = findProgram(environment);
    checkArchitecture(program);
    Path folder;
    try {
      folder = Files.createTempDirectory("apns-mock-");
      FOLDERS.add(folder);
    } catch (IOException error) {
      throw new ApnsMockException("Cannot create a temporary folder for certificates: " + error.getMessage(), error);
    }
    List<String> command = new ArrayList<>(List.of(
        program.toString(), "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", folder.toString(),
        "--port-file", portFile(folder).toString(), "--exit-on-stdin-close"));
    command.addAll(arguments);
    Process process;
    try {
      // The server exits when its standard input closes, so it cannot outlive this process.
      process = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
    } catch (IOException error) {
      delete(folder);
      throw cannotRun(program, error.getMessage(), error);
    }
    ServerProcess server = new ServerProcess(process, folder);
    try {
      server.waitUntilReady(timeout);
      return server;
    } catch (RuntimeException error) {
      process.destroyForcibly();
      server.close();
      throw error;
    }
  }

  /** Returns the value of APNS_MOCK_BINARY, or else the first apns-mock in PATH. */
  static Path findProgram(Map<String, String> environment) {
    String configured = environment.getOrDefault("APNS_MOCK_BINARY", "");
    if (!configured.isEmpty()) {
      Path program = Path.of(configured);
      if (!Files.isRegularFile(program)) {
        throw new ApnsMockException("APNS_MOCK_BINARY is " + configured + ", which is not a file; set it to the path of"
            + " the apns-mock program, or unset it to search PATH.");
      }
      return program.toAbsolutePath();
    }
    for (String directory : environment.getOrDefault("PATH", "").split(File.pathSeparator)) {
      Path program = Path.of(directory, "apns-mock");
      if (!directory.isEmpty() && Files.isRegularFile(program) && Files.isExecutable(program)) {
        return program.toAbsolutePath();
      }
    }
    throw new ApnsMockException("apns-mock was not found: APNS_MOCK_BINARY is not set and PATH has no apns-mock;"
        + " install the program, or set APNS_MOCK_BINARY to its path.");
  }

  /** Throws an exception for an ELF program of another architecture, which the JDK would run as a shell script. */
  private static void checkArchitecture(Path program) {
    byte[] header;
    try (InputStream input = Files.newInputStream(program)) {
      header = input.readNBytes(20);
    } catch (IOException error) {
      throw cannotRun(program, error.toString(), error);
    }
    if (header.length < 20 || header[0] != 0x7f || header[1] != 'E' || header[2] != 'L' || header[3] != 'F') {
      return;
    }
    int machine = Byte.toUnsignedInt(header[18]) | Byte.toUnsignedInt(header[19]) << 8;
    int expected = switch (System.getProperty("os.arch")) {
      case "amd64" -> 62;
      case "aarch64" -> 183;
      default -> machine;
    };
    if (machine != expected || !System.getProperty("os.name").equals("Linux")) {
      throw cannotRun(program, "it is an ELF program for another system or architecture", null);
    }
  }

  private static ApnsMockException cannotRun(Path program, String cause, Throwable error) {
    return new ApnsMockException(
        "Cannot run %s: %s; install an apns-mock program for %s %s, or set APNS_MOCK_BINARY to its path.".formatted(
            program, cause, System.getProperty("os.name"), System.getProperty("os.arch")), error);
  }

  /** The file that the server writes when it is ready. */
  Path portFile() {
    return portFile(folder);
  }

  private static Path portFile(Path folder) {
    return folder.resolve("ports.json");
  }

  Process process() {
    return process;
  }

  private void waitUntilReady(Duration timeout) {
    long deadline = System.nanoTime() + timeout.toNanos();
    while (!Files.exists(portFile())) {
      if (hasExited(POLL_INTERVAL)) {
        String cause = switch (process.exitValue()) {
          case 2 -> " because its configuration is not valid";
          case 6 -> " because a port is in use";
          default -> "";
        };
        throw new ApnsMockException(exitMessage() + " while starting" + cause + lastLines());
      }
      if (System.nanoTime() > deadline) {
        throw new ApnsMockException("The apns-mock server (pid " + process.pid() + ") was not ready after "
            + timeout.toSeconds() + " s" + lastLines());
      }
    }
  }

  /** Returns whether the process has exited, or exits within a time. */
  boolean hasExited(Duration within) {
    try {
      return process.waitFor(within.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return !process.isAlive();
    }
  }

  /** Returns the error of calls to this server after it has exited. */
  ApnsMockException exitError() {
    return new ApnsMockException(exitMessage() + lastLines());
  }

  private String exitMessage() {
    return "The apns-mock server (pid " + process.pid() + ") exited with status " + process.exitValue();
  }

  private void readStderr() {
    try (BufferedReader reader = process.errorReader(StandardCharsets.UTF_8)) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        synchronized (stderr) {
          stderr.addLast(line);
          if (stderr.size() > MAX_STDERR_LINES) {
            stderr.removeFirst();
          }
        }
      }
    } catch (IOException ignored) {
      // The stream is closed when the process is destroyed.
    }
  }

  /** Returns the last lines of standard error as the end of an error message. */
  private String lastLines() {
    if (!process.isAlive()) {
      // The lines of a process that has exited may not have been read yet.
      join(stderrReader);
    }
    synchronized (stderr) {
      return stderr.isEmpty()
          ? "; it wrote nothing to standard error." : "; its last output:\n" + String.join("\n", stderr);
    }
  }

  private static void join(Thread thread) {
    try {
      thread.join(1000);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  /** Ends the server and removes its folder. Further calls do nothing. */
  @Override
  public void close() {
    try {
      process.getOutputStream().close();
    } catch (IOException ignored) {
      // The process has exited.
    }
    if (!hasExited(STOP_TIMEOUT)) {
      process.destroyForcibly();
      hasExited(STOP_TIMEOUT);
    }
    delete(folder);
  }

  private static void deleteFolders() {
    for (Path folder : FOLDERS) {
      try {
        delete(folder);
      } catch (ApnsMockException ignored) {
        // There is nobody left to handle it.
      }
    }
  }

  private static void delete(Path folder) {
    FOLDERS.remove(folder);
    if (!Files.exists(folder)) {
      return;
    }
    try (Stream<Path> paths = Files.walk(folder)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(path);
      }
    } catch (IOException | UncheckedIOException error) {
      throw new ApnsMockException("Cannot remove the temporary folder " + folder + ": " + error.getMessage(), error);
    }
  }
}
