package org.testcontainers.containers.wait.strategy;

/** A stand-in for the wait strategies of Testcontainers. */
public final class Wait {
  private Wait() {}

  public static HttpWaitStrategy forHttp(String path) {
    return new HttpWaitStrategy(path);
  }
}
