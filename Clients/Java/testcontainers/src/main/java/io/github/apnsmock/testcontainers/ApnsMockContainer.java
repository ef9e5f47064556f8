package io.github.apnsmock.testcontainers;

import io.github.apnsmock.ApnsMockServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * A container that runs {@code apns-mock serve}.
 *
 * <pre>{@code
 * @Container
 * private static final ApnsMockContainer container = new ApnsMockContainer();
 *
 * @Test
 * void sends() throws Exception {
 *   ApnsMockServer server = container.client();
 *   ...
 * }
 * }</pre>
 */
public class ApnsMockContainer extends GenericContainer<ApnsMockContainer> {
  private static final int APNS_PORT = 2197;
  private static final int ADMIN_PORT = 8197;
  private static final String KEY = "AuthKey_MOCKKEY001.p8";

  private List<String> arguments = List.of();
  private Path folder;

  /** Creates a container of the image of the repository's Dockerfile. */
  public ApnsMockContainer() {
    this(DockerImageName.parse("apns-mock"));
  }

  /** Creates a container of an image. */
  public ApnsMockContainer(DockerImageName image) {
    super(image);
    withExposedPorts(APNS_PORT, ADMIN_PORT);
    waitingFor(Wait.forHttp("/readyz").forPort(ADMIN_PORT));
  }

  /** Adds flags of {@code apns-mock serve}, such as {@code "--rules", "strict"}. */
  public ApnsMockContainer withArguments(String... arguments) {
    this.arguments = List.of(arguments);
    List<String> command = new ArrayList<>(List.of("serve"));
    command.addAll(this.arguments);
    return withCommand(command.toArray(String[]::new));
  }

  /** Adds the name by which this machine reaches the engine to the certificate, and to those that the admin API allows. */
  @Override
  protected void configure() {
    addHost("--allow-host", "APNS_MOCK_ALLOW_HOST");
    addHost("--san", "APNS_MOCK_SAN");
  }

  private void addHost(String flag, String variable) {
    // A flag overrides the variable.
    if (arguments.stream().anyMatch(argument -> argument.split("=")[0].equals(flag))) {
      List<String> extended = new ArrayList<>(arguments);
      extended.addAll(List.of(flag, getHost()));
      withArguments(extended.toArray(String[]::new));
    } else {
      String given = getEnvMap().get(variable);
      withEnv(variable, given == null || given.isEmpty() ? getHost() : given + "," + getHost());
    }
  }

  /** Returns a client of the running server, with the settings that a provider on this machine needs. */
  public synchronized ApnsMockServer client() {
    try {
      if (folder == null) {
        Path created = Files.createTempDirectory("apns-mock-");
        copyFileFromContainer("/certs/ca.pem", created.resolve("ca.pem").toString());
        copyFileFromContainer("/certs/" + KEY, created.resolve(KEY).toString());
        folder = created;
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return ApnsMockServer.fromEnvironment(Map.of(
        "APNS_MOCK_ADMIN", getHost() + ":" + getMappedPort(ADMIN_PORT),
        "APNS_MOCK_APNS", getHost() + ":" + getMappedPort(APNS_PORT),
        "APNS_MOCK_CA", folder.resolve("ca.pem").toString(), "APNS_MOCK_KEY", folder.resolve(KEY).toString(),
        "APNS_MOCK_KEY_ID", "MOCKKEY001", "APNS_MOCK_TEAM_ID", "MOCKTEAM01"));
  }

  /** Stops the container, and removes the copies of its certificate and key. */
  @Override
  public synchronized void stop() {
    super.stop();
    if (folder == null) {
      return;
    }
    try {
      Files.deleteIfExists(folder.resolve("ca.pem"));
      Files.deleteIfExists(folder.resolve(KEY));
      Files.deleteIfExists(folder);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    folder = null;
  }
}
