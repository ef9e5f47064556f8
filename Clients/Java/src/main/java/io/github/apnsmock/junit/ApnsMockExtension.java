package io.github.apnsmock.junit;

import io.github.apnsmock.ApnsMockException;
import io.github.apnsmock.ApnsMockServer;
import io.github.apnsmock.TestRun;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestWatcher;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.SearchOption;
import org.opentest4j.TestAbortedException;

/** The JUnit 5 extension of {@link ApnsMock}. */
public final class ApnsMockExtension implements BeforeEachCallback, AfterEachCallback, ParameterResolver, TestWatcher {
  private static final Namespace NAMESPACE = Namespace.create(ApnsMockExtension.class);

  /** Creates the extension; JUnit calls this. */
  public ApnsMockExtension() {}

  @Override
  public void beforeEach(ExtensionContext context) {
    ServerHolder holder = holder(context);
    ApnsMockServer server = holder.running();
    context.getStore(NAMESPACE).put("test", holder.run.startTest(name(context)));
    server.reset();
    ApnsMock options = options(context);
    String profile = options.profile().isEmpty() ? "healthy" : options.profile();
    if (options.seed() >= 0) {
      server.profile(profile, options.seed());
    } else if (!options.profile().isEmpty()) {
      server.profile(profile);
    }
  }

  @Override
  public void afterEach(ExtensionContext context) {
    ServerHolder holder = holder(context);
    ApnsMockServer server = holder.server;
    boolean hasFailed = context.getExecutionException().isPresent();
    if (server == null) {
      return; // It could not be started, which has failed the test.
    }
    if (context.getExecutionException().orElse(null) instanceof TestAbortedException assumption) {
      endTest(context, holder.run, "skipped", assumption.getMessage());
      return;
    }
    if (hasFailed) {
      printReport(context, server);
      endTest(context, holder.run, "failed", context.getExecutionException().map(Throwable::toString).orElse(null));
      return;
    }
    ApnsMock options = options(context);
    try {
      server.check(List.of(options.failOnFindings()), options.failOnRejected());
      endTest(context, holder.run, "passed", null);
    } catch (AssertionError | ApnsMockException error) {
      printReport(context, server);
      endTest(context, holder.run, "failed", error.getMessage());
      throw error;
    }
  }

  @Override
  public void testDisabled(ExtensionContext context, Optional<String> reason) {
    holder(context).recordDisabled(name(context), reason.orElse(null));
  }

  /** Returns the name of a test. The display names of parameterized ones have only the arguments: {@code [1] a}. */
  private static String name(ExtensionContext context) {
    String method = context.getRequiredTestMethod().getName();
    String display = context.getDisplayName();
    boolean namesMethod = display.equals(method) || display.startsWith(method + "(");
    return context.getRequiredTestClass().getSimpleName() + "." + (namesMethod ? display : method + " " + display);
  }

  private static void endTest(ExtensionContext context, TestRun run, String outcome, String message) {
    Long number = context.getStore(NAMESPACE).get("test", Long.class);
    run.endTest(number == null ? 0 : number, outcome, message);
  }

  private static void printReport(ExtensionContext context, ApnsMockServer server) {
    System.err.println(context.getDisplayName() + " failed. " + report(server));
  }

  private static String report(ApnsMockServer server) {
    try {
      return server.report();
    } catch (ApnsMockException error) {
      return "apns-mock: " + error.getMessage();
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == ApnsMockServer.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return holder(context).running();
  }

  private static ServerHolder holder(ExtensionContext context) {
    List<String> arguments = List.of(options(context).arguments());
    return context.getRoot().getStore(NAMESPACE)
        .getOrComputeIfAbsent(arguments, key -> new ServerHolder(arguments), ServerHolder.class);
  }

  /** Returns the annotation of the method, its class, or the classes around that. */
  private static ApnsMock options(ExtensionContext context) {
    return context.getTestMethod().flatMap(method -> AnnotationSupport.findAnnotation(method, ApnsMock.class))
        .or(() -> context.getTestClass().flatMap(type -> AnnotationSupport.findAnnotation(
            type, ApnsMock.class, SearchOption.INCLUDE_ENCLOSING_CLASSES)))
        .orElseGet(() -> Defaults.class.getAnnotation(ApnsMock.class));
  }

  /** Has the default options, for tests that name this extension without the annotation. */
  @ApnsMock
  private static final class Defaults {}

  /** The server of all tests with the same arguments. JUnit closes it after the last test. */
  private static final class ServerHolder implements CloseableResource {
    private final List<String> arguments;
    private ApnsMockServer server;
    private TestRun run;
    /** The names and reasons of disabled tests, recorded when a test needs the server. */
    private final List<String[]> disabled = new ArrayList<>();

    ServerHolder(List<String> arguments) {
      this.arguments = arguments;
    }

    /** Returns the server. One that has ended is replaced, so that it does not fail the following tests. */
    synchronized ApnsMockServer running() {
      if (server == null || !server.isRunning()) {
        close();
        server = ApnsMockServer.start(arguments.toArray(String[]::new));
        run = server.startRun("junit");
        disabled.forEach(test -> recordDisabled(test[0], test[1]));
        disabled.clear();
      }
      return server;
    }

    /** Records a disabled test as skipped. It does not start the server. */
    synchronized void recordDisabled(String name, String reason) {
      if (run == null) {
        disabled.add(new String[] {name, reason});
      } else {
        run.endTest(run.startTest(name), "skipped", reason);
      }
    }

    @Override
    public synchronized void close() {
      if (server != null) {
        run.end();
        server.close();
      }
    }
  }
}
