public import APNSRules
public import Faults
import NIOCore

/// Where to listen, or where a server listens.
public struct Endpoint: Sendable, Equatable, CustomStringConvertible {
  /// A host name or an IP address, without brackets.
  public var host: String
  /// A TCP port; 0 stands for any free one.
  public var port: Int

  /// An endpoint from parts.
  public init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// `HOST:PORT`, with an IPv6 address in brackets, or nil if it is not of that form.
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

  /// Whether only programs on this machine can reach it.
  public var isLoopback: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

  /// Where a client on the same machine reaches a listener: one that listens everywhere is reached by loopback.
  package var reachable: Endpoint {
    switch host {
    case "0.0.0.0": Endpoint(host: "127.0.0.1", port: port)
    case "::": Endpoint(host: "::1", port: port)
    default: self
    }
  }
}

extension Endpoint {
  /// The endpoint of an IP address with its port; nil for any other kind of address.
  init?(_ address: SocketAddress) {
    guard let host = address.ipAddress, let port = address.port else { return nil }
    self.init(host: host, port: port)
  }
}

/// A fault profile that somebody chose: ready to run, and the text it was made from, so that its knobs can be turned.
public struct ChosenProfile: Sendable, Equatable {
  /// The text.
  public let source: ProfileSource
  /// The profile with its knobs as they are.
  public internal(set) var profile: Profile

  /// A choice.
  public init(source: ProfileSource, profile: Profile) {
    self.source = source
    self.profile = profile
  }

  /// How it is asked for with its knobs as they are: `flaky-503?rate=0.4`.
  public var reference: String {
    ProfileReference(.name(profile.name), parameters: profile.turnedKnobs).description
  }
}

/// Everything that can be set about a server. The defaults need no set-up.
public struct Configuration: Sendable {
  /// Where providers connect (TLS and HTTP/2), one or more.
  public var apns = [Endpoint(host: "127.0.0.1", port: 2197)]
  /// Where the inbox is read (plain HTTP/1.1); nil for a server without one.
  public var admin: Endpoint? = Endpoint(host: "127.0.0.1", port: 8197)
  /// Folder of certificates and keys; made at the first start.
  public var certificates = "Certs"
  /// Names that the server certificate bears besides the usual ones.
  public var certificateNames: [String] = []
  /// PEM files with further CAs that client certificates may come from.
  public var clientAuthorities: [String] = []
  /// The environment of APNs that is mimicked.
  public var environment = PushEnvironment.sandbox
  /// What is answered where evidence about APNs is open.
  public var rules = RuleMode.apple
  /// The `apns:` settings.
  public var settings = APNSSettings()
  /// How many records the inbox keeps.
  public var maxRecords = 100_000
  /// How many bytes of requests the inbox keeps.
  public var maxBytes = 256 << 20
  /// Event loops for providers' connections; nil for one per core.
  public var threads: Int?
  /// Makes generated ids repeatable; nil draws one.
  public var seed: UInt64?
  /// The fault profiles there are: the built-in ones, and those of a user's folder.
  public var profiles = ProfileLibrary()
  /// The folder with the user's profiles, to be read again on demand; nil for none.
  public var profilesFolder: String?
  /// The fault profile in force from the start; nil for `healthy`.
  public var profile: ChosenProfile?
  /// Whether device tokens that ask for an outcome get it.
  public var magicTokens = true
  /// A bearer token for the admin listener; nil for none.
  public var adminToken: String?
  /// Admin host names accepted besides loopback names, IP addresses and `apns-mock`.
  public var allowedHosts: [String] = []
  /// How long a shutdown waits for open streams.
  public var shutdownTimeout = Duration.seconds(5)

  /// The defaults.
  public init() {}
}
