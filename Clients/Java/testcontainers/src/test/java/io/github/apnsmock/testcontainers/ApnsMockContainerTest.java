package io.github.apnsmock.testcontainers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.apnsmock.ApnsMockException;
import io.github.apnsmock.ApnsMockServer;
import java.io.InputStream;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;

/** No container is run: the stand-in for the engine runs the program. */
final class ApnsMockContainerTest {
  @Test
  void isStartedUsedAndRemoved() throws Exception {
    try (ApnsMockContainer container = new ApnsMockContainer()
        .withArguments("--rules", "strict", "--seed", "7", "--allow-host=mock.test").withEnv("APNS_MOCK_SAN", "push.test")) {
      container.start();
      ApnsMockServer server = container.client();
      assertTrue(Files.readString(server.settings().key()).contains("PRIVATE KEY"));
      assertTrue(server.report().contains("seed 7, profile healthy, 0 pushes"), server.report());
      assertEquals(server.settings(), container.client().settings());
      HttpRequest request = HttpRequest.newBuilder(server.settings().url()).build();
      HttpClient provider = HttpClient.newBuilder().sslContext(trusting(server.settings().ca())).build();
      assertEquals(405, provider.send(request, HttpResponse.BodyHandlers.discarding()).statusCode());
      assertTrue(names(server).containsAll(List.of("push.test", server.settings().url().getHost())), names(server).toString());
      container.stop();
      assertFalse(Files.exists(server.settings().ca()));
      assertThrows(ApnsMockException.class, server::report);
    }
  }

  /** The names in the server's certificate. */
  private static List<Object> names(ApnsMockServer server) throws Exception {
    try (SSLSocket socket = (SSLSocket) trusting(server.settings().ca()).getSocketFactory()
        .createSocket(server.settings().url().getHost(), server.settings().url().getPort())) {
      X509Certificate certificate = (X509Certificate) socket.getSession().getPeerCertificates()[0];
      return certificate.getSubjectAlternativeNames().stream().<Object>map(name -> name.get(1)).toList();
    }
  }

  private static SSLContext trusting(Path authority) throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream file = Files.newInputStream(authority)) {
      store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
    }
    TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    factory.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, factory.getTrustManagers(), null);
    return context;
  }

  @Test
  void containerThatExitsIsAnError() {
    try (ApnsMockContainer container = new ApnsMockContainer().withArguments("--profile", "flaky-504")) {
      assertThrows(IllegalStateException.class, container::start);
    }
  }
}
