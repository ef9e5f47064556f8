package io.github.apnsmock;

/** A server that cannot be started or reached, or an error response of its admin API. */
public class ApnsMockException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int status;

  ApnsMockException(String message) {
    this(message, 0, null);
  }

  ApnsMockException(String message, Throwable cause) {
    this(message, 0, cause);
  }

  ApnsMockException(String message, int status, Throwable cause) {
    super(message, cause);
    this.status = status;
  }

  /** Returns the HTTP status of an error response, or 0 if there was no response. */
  public int status() {
    return status;
  }
}
