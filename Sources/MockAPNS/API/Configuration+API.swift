import APNSMockRules
import APNSMockFaults
import APNSMockNotation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension MockServer.Configuration {
  /// Returns a configuration for a test: a listener on any free port of the loopback address, and certificates in a
  /// new temporary folder, which is removed when the server stops or cannot start.
  public static func ephemeral() -> Self {
    var configuration = MockServer.Configuration()
    configuration.apns = [MockServer.Endpoint(host: "127.0.0.1", port: 0)]
    configuration.certificates =
      FileManager.default.temporaryDirectory.appendingPathComponent("apns-mock-\(UUID().uuidString)").path
    configuration.removesCertificates = true
    return configuration
  }

  /// The APNs listeners for providers (TLS and HTTP/2), one or more.
  public var apns: [MockServer.Endpoint] {
    get { apnsListeners.map(\.endpoint) }
    set { apnsListeners = newValue.map { ListenerAddress($0) } }
  }

  /// The listeners for providers without TLS: HTTP/2 with prior knowledge, and HTTP/1.1.
  public var apnsPlain: [MockServer.Endpoint] {
    get { apnsPlainListeners.map(\.endpoint) }
    set { apnsPlainListeners = newValue.map { ListenerAddress($0) } }
  }

  /// The listener of the CONNECT proxy for Apple's push hosts; nil for none.
  public var proxy: MockServer.Endpoint? {
    get { proxyListener?.endpoint }
    set { proxyListener = newValue.map { ListenerAddress($0) } }
  }

  /// The behaviors to choose from where evidence about APNs is inconclusive or documentation and practice differ.
  public enum Strictness: String, Sendable, CaseIterable {
    /// Accept what APNs was observed to accept.
    case apple
    /// Reject what Apple's documentation forbids.
    case strict
    /// Accept all that may be accepted.
    case lenient
  }

  /// The behavior where evidence about APNs is inconclusive.
  public var strictness: Strictness {
    get { Strictness(rawValue: rules.rawValue) ?? .apple }
    set { rules = RuleMode(rawValue: newValue.rawValue) ?? .apple }
  }

  /// Whether the server mocks APNs' production environment instead of the sandbox.
  public var isProduction: Bool {
    get { environment == .production }
    set { environment = newValue ? .production : .sandbox }
  }

  /// Selects the fault profile that is active from the start and after a reset.
  ///
  /// - Parameter reference: A built-in profile or a file, with parameters if needed: `flaky-503`, `flaky-503?rate=0.4`,
  ///   `./profile.yaml`.
  /// - Throws: `MockServerError` for an unknown profile, an unknown parameter or an invalid file.
  public mutating func useProfile(_ reference: String) throws(MockServerError) {
    profile = try profiles.selected(reference)
  }

  /// Removes a temporary certificate folder.
  func removeTemporaryFolder() {
    if removesCertificates { try? FileManager.default.removeItem(atPath: certificates) }
  }
}

extension ProfileLibrary {
  /// Loads the profile that a reference in text form specifies.
  func selected(_ reference: String) throws(MockServerError) -> SelectedProfile {
    let parsed: ProfileReference
    do {
      parsed = try ProfileReference(reference)
    } catch {
      throw MockServerError(.invalidInput, "\"\(reference)\" is not a profile. Expected \(error.allowed).")
    }
    do {
      let (source, loaded) = try loaded(parsed)
      return SelectedProfile(source: source, profile: loaded.profile)
    } catch {
      throw MockServerError(error)
    }
  }
}

extension MockServer {
  /// The settings that an APNs client needs to connect to a server. All paths are absolute.
  public struct ClientSettings: Sendable, Equatable {
    /// The host name, which the server's certificate contains.
    public let host: String
    /// The TCP port of the first APNs listener.
    public let port: Int
    /// The path of the CA certificate (PEM) that the client must trust.
    public let caPath: String
    /// The path of the provider key: an ES256 private key (`.p8`), trusted for all topics.
    public let keyPath: String
    /// The key id of the provider key.
    public let keyID: String
    /// The team id of the provider key.
    public let teamID: String
    /// The path of a provider certificate (PEM), for clients that use no provider tokens.
    public let certificatePath: String
    /// The path of the provider certificate's private key (PEM).
    public let certificateKeyPath: String
    /// A topic of the provider certificate.
    public let topic: String

    /// The server's URL without a path, such as `https://localhost:40123`.
    public var url: String { "https://\(MockServer.Endpoint(host: host, port: port))" }
  }
}
