package org.testcontainers.containers.wait.strategy;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;

/** A stand-in for the wait strategy of Testcontainers. */
public class HttpWaitStrategy {
  private final String path;
  private int port;

  HttpWaitStrategy(String path) {
    this.path = path;
  }

  public HttpWaitStrategy forPort(int port) {
    this.port = port;
    return this;
  }

  public int port() {
    return port;
  }

  public void check(String url) throws IOException {
    HttpURLConnection connection = (HttpURLConnection) URI.create(url + path).toURL().openConnection();
    if (connection.getResponseCode() != 200) {
      throw new IllegalStateException("not ready: " + connection.getResponseCode());
    }
  }
}
