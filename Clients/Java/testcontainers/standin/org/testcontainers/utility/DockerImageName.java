package org.testcontainers.utility;

/** A stand-in for the name of an image. */
public record DockerImageName(String name) {
  public static DockerImageName parse(String name) {
    return new DockerImageName(name);
  }
}
