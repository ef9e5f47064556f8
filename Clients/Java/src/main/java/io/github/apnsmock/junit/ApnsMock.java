package io.github.apnsmock.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.ResourceLock;

/**
 * Gives a test an apns-mock server as a parameter of type {@link io.github.apnsmock.ApnsMockServer}.
 *
 * <p>All tests of a JVM share one server, which is reset before each test. Tests with this annotation do not run in
 * parallel with each other. If a test fails, its pushes, the seed, the fault profile and the findings are printed to
 * standard error. The annotation of a method replaces that of its class; a parameter of the constructor is the server
 * of the class.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(ApnsMockExtension.class)
@ResourceLock("io.github.apnsmock.server")
public @interface ApnsMock {
  /** The fault profile, such as {@code flaky-503?rate=0.3}; by default none. */
  String profile() default "";

  /**
   * The seed of the fault profile; by default that of the server. The same seed gives the same decisions for the same
   * pushes, so use the same device tokens in each run.
   */
  long seed() default -1;

  /**
   * The findings about the provider that fail the test: their names, or {@code "all"} for any; by default none. At the
   * end of the test, every push that could still be retried counts as {@code abandoned}.
   */
  String[] failOnFindings() default {};

  /** Whether a push that APNs' rules rejected fails the test. */
  boolean failOnRejected() default false;

  /** Further arguments of {@code apns-mock serve}. Each list of arguments has a server of its own. */
  String[] arguments() default {};
}
