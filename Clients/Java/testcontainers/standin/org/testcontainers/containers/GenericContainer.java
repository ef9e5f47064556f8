package org.testcontainers.containers;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.testcontainers.containers.wait.strategy.HttpWaitStrategy;
import org.testcontainers.utility.DockerImageName;

/**
 * A stand-in for Testcontainers and its engine: what the module uses of it. The command of a container runs as a process of
 * this machine, and the engine is reached by an address that no certificate has by default.
 */
public class GenericContainer<SELF extends GenericContainer<SELF>> implements AutoCloseable {
  private static final String HOST = System.getProperty("os.name").equals("Linux") ? "127.0.0.2" : "127.0.0.1";

  private final DockerImageName image;
  private final Map<String, String> environment = new HashMap<>();
  private List<Integer> ports = List.of();
  private List<String> command = List.of("serve");
  private HttpWaitStrategy strategy;
  private Path folder;
  private Process process;
  private String bound = "";

  public GenericContainer(DockerImageName image) {
    this.image = image;
  }

  public SELF withExposedPorts(Integer... ports) {
    this.ports = List.of(ports);
    return self();
  }

  public SELF withCommand(String... command) {
    this.command = List.of(command);
    return self();
  }

  public SELF withEnv(String name, String value) {
    environment.put(name, value);
    return self();
  }

  public Map<String, String> getEnvMap() {
    return environment;
  }

  protected void configure() {}

  public SELF waitingFor(HttpWaitStrategy strategy) {
    this.strategy = strategy;
    return self();
  }

  @SuppressWarnings("unchecked")
  protected SELF self() {
    return (SELF) this;
  }

  public void start() {
    configure();
    try {
      folder = Files.createTempDirectory("engine-");
      Path portFile = folder.resolve("ports.json");
      List<String> words = new ArrayList<>(List.of(System.getenv("APNS_MOCK_BINARY")));
      words.addAll(command);
      words.addAll(List.of(
          "--apns", "0.0.0.0:0", "--admin", "0.0.0.0:0", "--certs", folder + "/certs", "--port-file", portFile.toString()));
      ProcessBuilder builder = new ProcessBuilder(words).redirectErrorStream(true);
      builder.environment().putAll(environment);
      process = builder.redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
      while (!Files.exists(portFile)) {
        if (!process.isAlive()) {
          throw new IllegalStateException(image.name() + " exited with " + process.exitValue());
        }
        Thread.sleep(10);
      }
      bound = Files.readString(portFile);
      strategy.check("http://" + HOST + ":" + getMappedPort(strategy.port()));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  public String getHost() {
    return HOST;
  }

  public Integer getMappedPort(int port) {
    if (!ports.contains(port)) {
      throw new IllegalArgumentException("port " + port + " is not exposed");
    }
    String name = port == 8197 ? "\"admin\"" : "\"apns\"";
    Matcher matcher = Pattern.compile(name + "[^}]*\"port\": ?(\\d+)").matcher(bound);
    if (!matcher.find()) {
      throw new IllegalStateException("no port in " + bound);
    }
    return Integer.valueOf(matcher.group(1));
  }

  public void copyFileFromContainer(String path, String destination) throws IOException {
    Files.copy(folder.resolve(path.substring(1)), Path.of(destination));
  }

  public void stop() {
    if (process != null) {
      process.destroy();
      process.onExit().join();
      process = null;
      remove(folder.toFile());
    }
  }

  private static void remove(File file) {
    File[] files = file.listFiles();
    for (File each : files == null ? new File[0] : files) {
      remove(each);
    }
    file.delete();
  }

  @Override
  public void close() {
    stop();
  }
}
