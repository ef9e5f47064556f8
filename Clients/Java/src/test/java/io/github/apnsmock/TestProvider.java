package io.github.apnsmock;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.KeyFactory;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Instant;
import java.util.Base64;
import java.util.Map;

/** Sends single pushes as a provider does. */
public final class TestProvider {
  private TestProvider() {}

  /** Sends a push and returns the status of the response. */
  public static int send(ApnsMockServer server, String device, String topic, String title) throws Exception {
    String body = Json.write(Map.of("aps", Map.of("alert", Map.of("title", title))));
    URI url = server.settings().url().resolve("/3/device/" + device);
    HttpRequest request = HttpRequest.newBuilder(url)
        .header("authorization", "bearer " + providerToken(server.settings()))
        .header("apns-topic", topic).header("apns-push-type", "alert")
        .POST(HttpRequest.BodyPublishers.ofString(body)).build();
    HttpResponse<String> response = server.httpClient().send(request, HttpResponse.BodyHandlers.ofString());
    if (response.version() != HttpClient.Version.HTTP_2) {
      throw new AssertionError("The response came over " + response.version() + ".");
    }
    return response.statusCode();
  }

  private static String providerToken(Settings settings) throws Exception {
    String pem = Files.readString(settings.key()).replaceAll("-----[A-Z ]+-----|\\s", "");
    String signed = part(Map.of("alg", "ES256", "kid", settings.keyId())) + "."
        + part(Map.of("iss", settings.teamId(), "iat", Instant.now().getEpochSecond()));
    Signature signature = Signature.getInstance("SHA256withECDSAinP1363Format");
    signature.initSign(
        KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem))));
    signature.update(signed.getBytes(StandardCharsets.US_ASCII));
    return signed + "." + Base64.getUrlEncoder().withoutPadding().encodeToString(signature.sign());
  }

  private static String part(Map<String, ?> claims) {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(Json.write(claims).getBytes(StandardCharsets.UTF_8));
  }
}
