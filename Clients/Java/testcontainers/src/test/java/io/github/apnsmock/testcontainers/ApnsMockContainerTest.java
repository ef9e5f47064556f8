package io.github.apnsmock.testcontainers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.apnsmock.ApnsMockException;
import io.github.apnsmock.ApnsMockServer;
import java.nio.file.Files;
import org.junit.jupiter.api.Test;

/** No container is run: the stand-in for the engine runs the program. */
final class ApnsMockContainerTest {
  @Test
  void isStartedUsedAndRemoved() throws Exception {
    try (ApnsMockContainer container = new ApnsMockContainer().withArguments("--rules", "strict", "--seed", "7")) {
      container.start();
      ApnsMockServer server = container.client();
      assertTrue(Files.readString(server.settings().key()).contains("PRIVATE KEY"));
      assertTrue(server.report().contains("seed 7, profile healthy, 0 pushes"), server.report());
      assertEquals(server.settings(), container.client().settings());
      container.stop();
      assertFalse(Files.exists(server.settings().ca()));
      assertThrows(ApnsMockException.class, server::report);
    }
  }

  @Test
  void containerThatExitsIsAnError() {
    try (ApnsMockContainer container = new ApnsMockContainer().withArguments("--profile", "flaky-504")) {
      assertThrows(IllegalStateException.class, container::start);
    }
  }
}
