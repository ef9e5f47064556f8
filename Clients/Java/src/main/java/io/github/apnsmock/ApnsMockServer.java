package io.github.apnsmock;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * An apns-mock server: a local server that replaces Apple's push service in tests.
 *
 * <p>Filters are maps from fields of the inbox to values, such as
 * {@code Map.of("topic", "com.example.*", "status", 410)}; a list matches any of its elements, and {@code q} accepts
 * a query. The server rejects unknown fields. Methods throw {@link ApnsMockException} if the server cannot be reached
 * or rejects a call, and {@link AssertionError} if {@link #waitFor} or {@link #verify} fails. Instances are safe for
 * use by several threads.
 */
public final class ApnsMockServer implements AutoCloseable {
  /**
   * The version of this client. It works with servers of the same major version, and below 1.0 of the same minor
   * version.
   */
  public static final String VERSION = "0.1.0";

  /** The topic that the server's provider certificate contains. Provider tokens are accepted for every topic. */
  public static final String TOPIC = "com.example.app";

  private static final Duration START_TIMEOUT = Duration.ofSeconds(30);
  private static final int PAGE_SIZE = 1000;

  private final AdminApi api;
  private final Settings settings;
  private final String scope;
  private final ServerProcess process;

  private ApnsMockServer(AdminApi api, Settings settings, String scope, ServerProcess process) {
    this.api = api;
    this.settings = settings;
    this.scope = scope;
    this.process = process;
  }

  /**
   * Starts a server with free ports and certificates in a temporary folder, and waits until it is ready.
   *
   * @param arguments further arguments of {@code apns-mock serve}, such as {@code "--rules", "strict"}
   */
  public static ApnsMockServer start(String... arguments) {
    return start(System.getenv(), List.of(arguments), START_TIMEOUT);
  }

  static ApnsMockServer start(Map<String, String> environment, List<String> arguments, Duration timeout) {
    ServerProcess process = ServerProcess.start(environment, arguments, timeout);
    try {
      return connect(PortFile.read(process.portFile()), process);
    } catch (RuntimeException error) {
      process.close();
      throw error;
    }
  }

  /**
   * Connects to the server that {@code apns-mock exec} started. Reads APNS_MOCK_ADMIN (an address or a URL) and
   * APNS_MOCK_PORT_FILE, APNS_MOCK_APNS, APNS_MOCK_CA, APNS_MOCK_KEY, APNS_MOCK_KEY_ID, APNS_MOCK_TEAM_ID and
   * APNS_MOCK_ADMIN_TOKEN. {@link #close} does not end this server.
   */
  public static ApnsMockServer fromEnvironment() {
    return fromEnvironment(System.getenv());
  }

  /**
   * Connects to a running server that variables describe: {@code APNS_MOCK_ADMIN}, {@code APNS_MOCK_APNS},
   * {@code APNS_MOCK_CA}, {@code APNS_MOCK_KEY}, {@code APNS_MOCK_KEY_ID}, {@code APNS_MOCK_TEAM_ID} and
   * {@code APNS_MOCK_ADMIN_TOKEN}, or {@code APNS_MOCK_PORT_FILE}.
   */
  public static ApnsMockServer fromEnvironment(Map<String, String> environment) {
    return connect(PortFile.of(environment), null);
  }

  private static ApnsMockServer connect(PortFile ports, ServerProcess process) {
    AdminApi api = new AdminApi(URI.create("http://" + ports.admin().authority()), ports.adminToken(), process);
    Values status = api.get("/api/v1/status", Map.of(), AdminApi.REQUEST_TIMEOUT);
    checkVersion(status.string("version"));
    Address apns = ports.apns();
    if (apns == null) {
      List<Address> addresses = Address.list(status.object("addresses").list("apns"));
      if (addresses.isEmpty()) {
        throw new ApnsMockException("The server at " + api.url() + " has no APNs listener; connect to a server that was"
            + " started with `apns-mock serve` or `apns-mock exec`.");
      }
      apns = addresses.get(0);
    }
    Settings settings = new Settings(apns.host(), apns.port(), URI.create("https://" + apns.authority()),
        Path.of(ports.ca()), Path.of(ports.key()), ports.keyId(), ports.teamId(), TOPIC);
    return new ApnsMockServer(api, settings, "", process);
  }

  private static void checkVersion(String version) {
    if (!compatibleSeries(version).equals(compatibleSeries(VERSION))) {
      throw new ApnsMockException(("The apns-mock server has version %s and this client has version %s; install"
          + " apns-mock %s.x, or the client of the server's version.").formatted(version, VERSION, compatibleSeries(VERSION)));
    }
  }

  /** Returns the part of a version that compatible versions share: "0.1" of "0.1.3", "2" of "2.4.0". */
  private static String compatibleSeries(String version) {
    String[] parts = version.split("\\.");
    return parts[0].equals("0") && parts.length > 1 ? parts[0] + "." + parts[1] : parts[0];
  }

  /** Ends a server that {@link #start} started and removes its folder. Further calls do nothing. */
  @Override
  public void close() {
    if (process != null) {
      process.close();
    }
  }

  /** Returns whether the server has not ended; true for a server that was not started here. */
  public boolean isRunning() {
    return process == null || process.process().isAlive();
  }

  ServerProcess process() {
    return process;
  }

  /** Starts a run, in which the tests that push to this server are recorded, or joins that of {@code apns-mock exec}. */
  public TestRun startRun(String name) {
    return TestRun.start(api, process == null, name);
  }

  /** Returns the values that a provider needs to send pushes to this server. */
  public Settings settings() {
    return settings;
  }

  /** Returns the base URL of the admin API and the web UI. */
  public URI adminUrl() {
    return api.url();
  }

  /**
   * Returns the same server restricted to the pushes that a query matches, such as {@code topic:com.acme.w3}: reset,
   * pushes, waitFor, verify, findings and export ignore all others.
   */
  public ApnsMockServer scoped(String query) {
    return new ApnsMockServer(api, settings, query, process);
  }

  /** Returns a TLS context that trusts the server's certificate. */
  public SSLContext sslContext() {
    try (InputStream pem = Files.newInputStream(settings.ca())) {
      KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
      store.load(null, null);
      for (Certificate authority : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
        store.setCertificateEntry("apns-mock", authority);
      }
      TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      trust.init(store);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, trust.getTrustManagers(), null);
      return context;
    } catch (IOException | GeneralSecurityException error) {
      throw new ApnsMockException("Cannot load the certificate authority " + settings.ca() + ": " + error, error);
    }
  }

  /** Returns a new HTTP/2 client for pushes that trusts the server's certificate. */
  public HttpClient httpClient() {
    return HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_2).proxy(HttpClient.Builder.NO_PROXY).sslContext(sslContext()).build();
  }

  /** Returns a new random device token of 64 hexadecimal digits. */
  public static String deviceToken() {
    byte[] token = new byte[32];
    new SecureRandom().nextBytes(token);
    return HexFormat.of().formatHex(token);
  }

  /**
   * Restores the state after start: inbox, counters, rules, profile, clock and devices. A scoped server removes only
   * the pushes of its scope.
   *
   * @param keep the parts that are kept, such as {@code profile}
   */
  public void reset(String... keep) {
    send("POST", "/reset", withScope(keep.length == 0 ? Map.of() : Map.of("keep", List.of(keep))));
  }

  /** Activates a fault profile: a name, or a reference with parameters such as {@code flaky-503?rate=0.3}. */
  public void profile(String reference) {
    send("PUT", "/profile", Map.of("name", reference));
  }

  /** Activates a fault profile with a seed. The same seed gives the same decisions. */
  public void profile(String reference, long seed) {
    send("PUT", "/profile", Map.of("name", reference, "seed", seed));
  }

  /** Adds a fault rule, such as {@code Map.of("name", "down", "do", Map.of("respond", Map.of("status", 503)))}. */
  public void rule(Map<String, ?> rule) {
    send("POST", "/rules", rule);
  }

  /** Adds a fault rule that is removed after a time. */
  public void rule(Map<String, ?> rule, Duration ttl) {
    Map<String, Object> limited = new HashMap<>(rule);
    limited.put("ttl", milliseconds(ttl));
    rule(limited);
  }

  /** Returns a device token, whose state can be set. */
  public Device device(String token) {
    return new Device(this, token);
  }

  void setDevice(String token, Map<String, ?> state) {
    send("PUT", "/devices/" + AdminApi.encode(token), state);
  }

  /** Returns the server's clock, which determines the age of provider tokens and the dates of records. */
  public Clock clock() {
    return new Clock(this);
  }

  /** Returns all records of the inbox, in the order of arrival. */
  public List<Push> pushes() {
    return pushes(Map.of());
  }

  /** Returns the records that a filter selects, in the order of arrival. */
  public List<Push> pushes(Map<String, ?> filter) {
    Map<String, Object> parameters = withScope(filter);
    parameters.put("limit", PAGE_SIZE);
    List<Push> pushes = new ArrayList<>();
    while (true) {
      Values page = api.get("/api/v1/pushes", parameters, AdminApi.REQUEST_TIMEOUT);
      if (!page.isTrue("complete")) {
        throw new ApnsMockException(page.number("evicted") + " pushes are missing because the inbox is full: start the"
            + " server with a larger --max-records or --max-bytes.");
      }
      page.list("items").forEach(item -> pushes.add(Push.of(item)));
      if (!(page.members().get("next") instanceof Number next)) {
        return pushes;
      }
      parameters.put("after", next);
    }
  }

  /** Waits up to 10 seconds until {@code count} or more pushes match a filter, and returns them. */
  public List<Push> waitFor(int count, Map<String, ?> filter) {
    return waitFor(Wait.atLeast(count), filter);
  }

  /**
   * Waits until the pushes since the last reset that match a filter have a number, and returns them.
   *
   * @throws AssertionError after the timeout, with the nearest pushes and the expected and the actual values
   */
  public List<Push> waitFor(Wait wait, Map<String, ?> filter) {
    Map<String, Object> parameters = withScope(filter);
    parameters.put("count", wait.count());
    if (wait.timeout() != null) {
      parameters.put("timeout", milliseconds(wait.timeout()));
    }
    if (wait.settle() != null) {
      parameters.put("settle", milliseconds(wait.settle()));
    }
    Values result =
        api.get("/api/v1/pushes/wait", parameters, AdminApi.MAX_WAIT.plus(AdminApi.REQUEST_TIMEOUT));
    if (!result.isTrue("satisfied")) {
      throw new AssertionError(result.string("text"));
    }
    if (result.list("items").size() < result.number("matched")) {
      return pushes(filter);
    }
    return result.list("items").stream().map(Push::of).toList();
  }

  /**
   * Verifies expectations, such as {@code Map.of("match", Map.of("topic", "com.example.app"), "count", 1)}.
   *
   * @throws AssertionError with the server's report if one is not met
   */
  public void verify(List<? extends Map<String, ?>> expectations) {
    verify(Map.of("expect", expectations));
  }

  /**
   * Verifies a document with {@code expect}, {@code order}, {@code no_others}, {@code nothing_lost},
   * {@code no_findings} or {@code timeout}.
   *
   * @throws AssertionError with the server's report if an expectation is not met
   */
  public void verify(Map<String, ?> document) {
    expect("/api/v1/verify", document);
  }

  /** Sends a request whose response says whether something passed. */
  private void expect(String path, Map<String, ?> body) {
    Values report = api.send("POST", path, withScope(body), AdminApi.MAX_WAIT.plus(AdminApi.REQUEST_TIMEOUT));
    if (!report.isTrue("passed")) {
      throw new AssertionError(report.string("text"));
    }
  }

  /**
   * Checks the provider at the end of a test, when no further attempt of a push can follow: every push that could still
   * be retried counts as {@code abandoned}.
   *
   * @param failOnFindings the names of findings, {@code all} alone for any, or nothing
   * @param failOnRejected whether a push that APNs' rules rejected is a failure
   * @throws AssertionError with a line for each finding, and for each reason with the correction
   */
  public void check(List<String> failOnFindings, boolean failOnRejected) {
    Map<String, Object> body = new HashMap<>();
    if (!failOnFindings.isEmpty()) {
      body.put("fail_on_findings", failOnFindings.equals(List.of("all")) ? true : failOnFindings);
    }
    if (failOnRejected) {
      body.put("fail_on_rejected", true);
    }
    if (!body.isEmpty()) {
      expect("/api/v1/check", body);
    }
  }

  /**
   * Verifies that the last attempt of every push was accepted or permanently rejected.
   *
   * @throws AssertionError with the server's report if a push is lost
   */
  public void assertNothingLost() {
    verify(Map.of("nothing_lost", true));
  }

  /** Returns the mistakes of the provider. */
  public List<Finding> findings() {
    return findings(Map.of());
  }

  /** Returns the mistakes of the provider in the pushes that a filter selects. */
  public List<Finding> findings(Map<String, ?> filter) {
    return api.get("/api/v1/findings", withScope(filter), AdminApi.REQUEST_TIMEOUT)
        .list("items").stream().map(Finding::of).toList();
  }

  /** Returns the records that a filter selects as NDJSON: one record per line. */
  public String export(Map<String, ?> filter) {
    return api.getText("/api/v1/export", withScope(filter), AdminApi.REQUEST_TIMEOUT);
  }

  /** Adds the records of an export to the inbox. */
  public void importRecords(String ndjson) {
    api.sendLines("/api/v1/import", ndjson);
  }

  /**
   * Returns a description of what the server received: the seed, the fault profile, the newest pushes, those that were
   * not accepted first, and the findings.
   */
  public String report() {
    return api.get("/api/v1/report", withScope(Map.of()), AdminApi.REQUEST_TIMEOUT).string("text");
  }

  Values send(String method, String path, Map<String, ?> body) {
    return api.send(method, "/api/v1" + path, body, AdminApi.REQUEST_TIMEOUT);
  }

  private Map<String, Object> withScope(Map<String, ?> members) {
    Map<String, Object> scoped = new HashMap<>(members);
    if (!scope.isEmpty()) {
      scoped.put("scope", scope);
    }
    return scoped;
  }

  /** Returns a duration as the server reads it. */
  static String milliseconds(Duration duration) {
    return duration.toMillis() + "ms";
  }

  /** A device token of the server. Every well-formed device token is online until another state is set. */
  public static final class Device {
    private final ApnsMockServer server;
    private final String token;

    private Device(ApnsMockServer server, String token) {
      this.server = server;
      this.token = token;
    }

    /** Lets the server accept pushes to this device token. */
    public void online() {
      set(Map.of("state", "online"));
    }

    /** Lets the server respond with 410 {@code Unregistered}, unregistered since now. */
    public void unregistered() {
      set(Map.of("state", "unregistered"));
    }

    /** Lets the server respond with 410 {@code Unregistered} and a time. */
    public void unregistered(Instant since) {
      set(Map.of("state", "unregistered", "since", since.toString()));
    }

    /** Lets the server respond with 410 {@code ExpiredToken}, expired since now. */
    public void expired() {
      set(Map.of("state", "expired"));
    }

    /** Lets the server respond with 410 {@code ExpiredToken} and a time. */
    public void expired(Instant since) {
      set(Map.of("state", "expired", "since", since.toString()));
    }

    /** Binds the device token to a topic: others get 400 {@code DeviceTokenNotForTopic}. */
    public void topic(String topic) {
      set(Map.of("topic", topic));
    }

    private void set(Map<String, ?> state) {
      server.setDevice(token, state);
    }
  }

  /** The clock of the server. */
  public static final class Clock {
    private final ApnsMockServer server;

    private Clock(ApnsMockServer server) {
      this.server = server;
    }

    /** Stops the clock. */
    public void freeze() {
      server.send("PUT", "/clock", Map.of("mode", "frozen"));
    }

    /** Stops the clock at a time. */
    public void freeze(Instant at) {
      server.send("PUT", "/clock", Map.of("mode", "frozen", "now", at.toString()));
    }

    /** Moves the clock, for example by 61 minutes to let provider tokens expire. */
    public void advance(Duration by) {
      server.send("POST", "/clock/advance", Map.of("by", milliseconds(by)));
    }

    /** Lets the clock follow the machine's clock. */
    public void real() {
      server.send("PUT", "/clock", Map.of("mode", "real"));
    }
  }
}
