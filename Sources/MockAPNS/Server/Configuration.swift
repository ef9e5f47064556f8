package import APNSMockRules
package import APNSMockFaultModel
package import APNSMockFaults
package import APNSMockInbox
import NIOCore

extension MockServer {
  /// A host and a TCP port to listen on or to connect to.
  public struct Endpoint: Sendable, Equatable, CustomStringConvertible {
    /// A host name or an IP address, without brackets.
    public var host: String
    /// A TCP port; 0 means any free one.
    public var port: Int

    /// Creates an endpoint.
    public init(host: String, port: Int) {
      self.host = host
      self.port = port
    }

    /// Parses `HOST:PORT`, with an IPv6 address in brackets. Returns nil for any other format.
    public init?(_ text: some StringProtocol) {
      guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
        (0...65535).contains(port)
      else { return nil }
      var host = text[..<colon]
      if host.hasPrefix("["), host.hasSuffix("]") {
        host = host.dropFirst().dropLast()
      } else if host.contains(":") {
        return nil
      }
      guard !host.isEmpty else { return nil }
      self.init(host: String(host), port: port)
    }

    /// `HOST:PORT`.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Whether the endpoint can be reached from this machine only.
    package var isLoopback: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

    /// The endpoint at which a client on the same machine reaches a listener: the loopback address for a listener on
    /// all addresses.
    package var reachable: Endpoint {
      switch host {
      case "0.0.0.0": Endpoint(host: "127.0.0.1", port: port)
      case "::": Endpoint(host: "::1", port: port)
      default: self
      }
    }
  }
}

extension MockServer.Endpoint {
  /// Creates the endpoint of an IP address and its port. Returns nil for any other kind of address.
  init?(_ address: SocketAddress) {
    guard let host = address.ipAddress, let port = address.port else { return nil }
    self.init(host: host, port: port)
  }
}

/// A selected fault profile: ready to run, with its source, so that its parameters can be changed.
package struct SelectedProfile: Sendable, Equatable {
  /// The source of the profile.
  package let source: ProfileSource
  /// The profile with the current values of its parameters.
  package internal(set) var profile: Profile

  /// Creates a selected profile.
  package init(source: ProfileSource, profile: Profile) {
    self.source = source
    self.profile = profile
  }

  /// The profile's name with all parameters that differ from their defaults, such as `flaky-503?rate=0.4`.
  package var reference: String {
    ProfileReference(.name(profile.name), parameters: profile.changedParameters).description
  }
}

extension ProfileLibrary {
  /// Loads the profile that a reference specifies, with its source.
  ///
  /// - Throws: `ProfileFailure`.
  package func loaded(_ reference: ProfileReference) throws(ProfileFailure) -> (
    source: ProfileSource, loaded: LoadedProfile
  ) {
    let source: ProfileSource
    switch reference.place {
    case .file(let path): source = try Self.file(path)
    case .name(let name):
      guard let known = self.source(named: name) else {
        // `profile(named:)` throws an error that lists the known names.
        return (ProfileSource(name: name, text: "", origin: .inline), try profile(named: name))
      }
      source = known
    }
    return (source, try profile(of: source, parameters: reference.parameters))
  }
}

/// The address of a listener for providers, with its properties.
package struct ListenerAddress: Sendable, Equatable {
  /// The address to listen on.
  package var endpoint: MockServer.Endpoint
  /// The environment that the listener mocks; nil for `MockServer.Configuration.environment`.
  package var environment: PushEnvironment?
  /// Whether its connections begin with a PROXY protocol header. Only for APNs listeners.
  package var hasProxyProtocol: Bool

  /// Creates an address.
  package init(_ endpoint: MockServer.Endpoint, environment: PushEnvironment? = nil, hasProxyProtocol: Bool = false) {
    self.endpoint = endpoint
    self.environment = environment
    self.hasProxyProtocol = hasProxyProtocol
  }
}

extension MockServer {
  /// The configuration of a server. The defaults work without changes.
  public struct Configuration: Sendable {
    /// The APNs listeners for providers (TLS and HTTP/2), one or more.
    package var apnsListeners = [ListenerAddress(Endpoint(host: "127.0.0.1", port: 2197))]
    /// The listeners for providers without TLS: HTTP/2 with prior knowledge, and HTTP/1.1.
    package var apnsPlainListeners: [ListenerAddress] = []
    /// The listener of the CONNECT proxy for Apple's push hosts; nil for none.
    package var proxyListener: ListenerAddress?
    /// The listeners for broadcast and channel management (TLS and HTTP/2), which accept no pushes to device tokens.
    package var manageListeners: [ListenerAddress] = []
    /// The listener of the admin API (plain HTTP/1.1); nil for a server without one.
    package var admin: Endpoint? = Endpoint(host: "127.0.0.1", port: 8197)
    /// The folder of certificates and keys; created at the first start.
    public var certificates = "Certs"
    /// Names in the server certificate in addition to the usual ones.
    public var certificateNames: [String] = []
    /// PEM files with further CAs that are trusted to issue client certificates.
    public var clientAuthorities: [String] = []
    /// The APNs environment of the listeners that name none.
    package var environment = PushEnvironment.sandbox
    /// The behavior where evidence about APNs is inconclusive.
    package var rules = RuleMode.apple
    /// The settings of the APNs rules.
    package var settings = APNSSettings()
    /// The maximum number of records in the inbox.
    public var maxRecords = 100_000
    /// The maximum size of the requests in the inbox, in bytes.
    public var maxBytes = 256 << 20
    /// The pushes that the inbox keeps.
    package var recording = Recording.all
    /// The writer of the store that keeps the inbox; nil for an inbox in memory.
    package var recordWriter: RecordWriter?
    /// The addresses that the server held while it was a standby, in the order of its listeners; nil if it was none.
    package var reservedAddresses: ReservedAddresses?
    /// Fixture files (YAML or JSON) with the apps, devices and channels that exist after the start and after a reset.
    public var fixtures: [String] = []
    /// The maximum number of registered devices, and of tokens registered without one.
    public var maxDevices = 1_000_000
    /// Whether pushes to device tokens that are not registered are rejected with 400 `BadDeviceToken`.
    public var requiresRegisteredDevices = false
    /// Whether pushes to topics of unknown apps are rejected with 400 `TopicDisallowed`, and broadcasts with 403
    /// `TopicMismatch`. An app is known to a team by fixtures, or by the team topics of one of its keys.
    public var requiresKnownTopics = false
    /// The number of event loops for provider connections; nil for one per core.
    public var threads: Int?
    /// The seed of generated ids and fault draws; nil for a random one.
    public var seed: UInt64?
    /// The available fault profiles: the built-in ones and those of the user's folder.
    package var profiles = ProfileLibrary()
    /// The folder of the user's profiles, which can be reloaded; nil for none.
    package var profilesFolder: String?
    /// The fault profile that is active from the start; nil for `healthy`.
    package var profile: SelectedProfile?
    /// Whether magic device tokens, which request an outcome, are enabled.
    public var magicTokens = true
    /// The service that pushes are forwarded to; nil for none.
    package var upstream: UpstreamSettings?
    /// The bearer token that the admin API requires; nil for none.
    package var adminToken: String?
    /// Host names that the admin API accepts in addition to loopback names, IP addresses and `apns-mock`.
    package var allowedHosts: [String] = []
    /// The time that a shutdown waits for open streams.
    public var shutdownTimeout = Duration.seconds(5)

    /// Whether the folder of certificates is removed when the server stops.
    var removesCertificates = false

    /// Creates a configuration with the defaults.
    public init() {}
  }
}

extension MockServer.Configuration {
  /// The listeners for providers in the order of their indices.
  var providerListeners: [(address: ListenerAddress, kind: ListenerKind)] {
    apnsListeners.map { ($0, $0.hasProxyProtocol ? .proxyProtocol : .tls) }
      + apnsPlainListeners.map { ($0, .cleartext) } + (proxyListener.map { [($0, .connectProxy)] } ?? [])
      + manageListeners.map { ($0, .management) }
  }
}
