package provider;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A small provider: sends pushes to APNs, keeps its provider token, and retries failed pushes. */
public final class Provider {
  /** A notification for one device; the payload is JSON. */
  public record Notification(String deviceToken, String topic, String payload) {}

  /** The response to the last attempt of a push; the timestamp is that of a 410, in milliseconds. */
  public record Result(int status, String reason, long timestamp) {}

  // APNs accepts a provider token for an hour.
  private static final Duration TOKEN_LIFETIME = Duration.ofMinutes(50);
  private static final int ATTEMPTS = 5;
  private static final Pattern REASON = Pattern.compile("\"reason\"\\s*:\\s*\"(\\w+)\"");
  private static final Pattern TIMESTAMP = Pattern.compile("\"timestamp\"\\s*:\\s*(\\d{1,18})");

  private final URI url;
  private final PrivateKey key;
  private final String keyId;
  private final String teamId;
  private final HttpClient client;
  private final Duration firstPause;
  private final Map<String, Instant> devices = new ConcurrentHashMap<>();
  private volatile Clock clock = Clock.systemUTC();
  private String token = "";
  private Instant signedAt = Instant.MIN;

  /**
   * Creates a provider.
   *
   * @param pem the provider key in the format of Apple's {@code .p8} files
   * @param firstPause the pause before the first retry
   */
  public Provider(URI url, String pem, String keyId, String teamId, HttpClient client, Duration firstPause)
      throws GeneralSecurityException {
    byte[] encoded = Base64.getDecoder().decode(pem.replaceAll("-----[A-Z ]+-----|\\s", ""));
    this.url = url;
    this.key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(encoded));
    this.keyId = keyId;
    this.teamId = teamId;
    this.client = client;
    this.firstPause = firstPause;
  }

  /** Replaces the machine's clock. */
  public void setClock(Clock clock) {
    this.clock = clock;
  }

  /** Adds a device token, or renews its registration. */
  public void register(String deviceToken) {
    devices.put(deviceToken, clock.instant());
  }

  /** Returns whether pushes may be sent to a device token. */
  public boolean isRegistered(String deviceToken) {
    return devices.containsKey(deviceToken);
  }

  /**
   * Sends the notifications of a queue with a number of workers and returns the responses. Notifications for device
   * tokens that are not registered are skipped.
   */
  public List<Result> run(Queue<Notification> queue, int workers) throws ExecutionException, InterruptedException {
    Callable<List<Result>> worker = () -> {
      List<Result> results = new ArrayList<>();
      for (Notification next = queue.poll(); next != null; next = queue.poll()) {
        if (isRegistered(next.deviceToken())) {
          results.add(send(next));
        }
      }
      return results;
    };
    ExecutorService threads = Executors.newFixedThreadPool(workers);
    try {
      List<Result> results = new ArrayList<>();
      for (Future<List<Result>> future : threads.invokeAll(Collections.nCopies(workers, worker))) {
        results.addAll(future.get());
      }
      return results;
    } finally {
      threads.shutdownNow();
    }
  }

  /**
   * Sends a push and retries it on 429, 500 and 503, on lost connections, and on an expired provider token. Every
   * attempt has the same {@code apns-id}.
   *
   * @throws IOException if the last attempt got no response
   */
  public Result send(Notification notification) throws IOException, InterruptedException {
    String apnsId = UUID.randomUUID().toString();
    Duration pause = firstPause;
    for (int attempt = 1; ; attempt++) {
      String current = providerToken();
      try {
        Result result = attempt(notification, apnsId, current);
        removeRejected(notification.deviceToken(), result);
        boolean isExpired = result.reason().equals("ExpiredProviderToken");
        if (isExpired) {
          discardToken(current);
        }
        boolean isTemporary = result.status() == 429 || result.status() == 500 || result.status() == 503;
        if (!isExpired && !isTemporary || attempt == ATTEMPTS) {
          return result;
        }
      } catch (IOException lost) {
        if (attempt == ATTEMPTS) {
          throw lost;
        }
      }
      // The random part keeps providers that failed together from retrying together.
      Thread.sleep((long) (pause.toMillis() * ThreadLocalRandom.current().nextDouble(1, 1.2)));
      pause = pause.multipliedBy(2);
    }
  }

  private Result attempt(Notification notification, String apnsId, String current)
      throws IOException, InterruptedException {
    HttpRequest request = HttpRequest.newBuilder(url.resolve("/3/device/" + notification.deviceToken()))
        .timeout(Duration.ofSeconds(30)).header("authorization", "bearer " + current).header("apns-id", apnsId)
        .header("apns-topic", notification.topic()).header("apns-push-type", "alert")
        .POST(HttpRequest.BodyPublishers.ofString(notification.payload())).build();
    HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
    Matcher reason = REASON.matcher(response.body());
    Matcher timestamp = TIMESTAMP.matcher(response.body());
    return new Result(response.statusCode(), reason.find() ? reason.group(1) : "",
        timestamp.find() ? Long.parseLong(timestamp.group(1)) : 0);
  }

  /** Removes a device token that APNs rejects, unless it was registered again after the time in a 410. */
  private void removeRejected(String deviceToken, Result result) {
    devices.computeIfPresent(deviceToken, (token, registered) -> {
      boolean isGone = result.status() == 410 && !registered.isAfter(Instant.ofEpochMilli(result.timestamp()));
      return isGone || result.reason().equals("BadDeviceToken") ? null : registered;
    });
  }

  /** Returns the current provider token (a JWT signed with ES256), signed again before it expires. */
  private synchronized String providerToken() {
    Instant now = clock.instant();
    if (token.isEmpty() || now.isAfter(signedAt.plus(TOKEN_LIFETIME))) {
      String signed = encode("{\"alg\":\"ES256\",\"kid\":\"" + keyId + "\"}") + "."
          + encode("{\"iss\":\"" + teamId + "\",\"iat\":" + now.getEpochSecond() + "}");
      try {
        Signature signature = Signature.getInstance("SHA256withECDSAinP1363Format");
        signature.initSign(key);
        signature.update(signed.getBytes(StandardCharsets.US_ASCII));
        token = signed + "." + Base64.getUrlEncoder().withoutPadding().encodeToString(signature.sign());
        signedAt = now;
      } catch (GeneralSecurityException error) {
        throw new IllegalStateException("The provider token cannot be signed with this key.", error);
      }
    }
    return token;
  }

  /** Removes a rejected provider token, unless it was already replaced. */
  private synchronized void discardToken(String rejected) {
    if (token.equals(rejected)) {
      token = "";
    }
  }

  private static String encode(String json) {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(json.getBytes(StandardCharsets.UTF_8));
  }
}
