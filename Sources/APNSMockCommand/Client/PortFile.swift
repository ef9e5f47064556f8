import APNSRules
import Inbox
import MockAPNS
import Notation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where a server listens and what its clients need, written for scripts when it is ready (CONTRACT.md, "Port file").
struct PortFile: Sendable, Equatable {
  /// The server's process.
  var pid: Int32
  /// Where providers connect.
  var apns: [Endpoint]
  /// Where the inbox is read.
  var admin: Endpoint?
  /// The CA to trust, the ids of the provider key, and the key itself; paths are absolute. Empty in a view.
  var ca: String
  var keyID: String
  var teamID: String
  var key: String
  /// The environment that is mimicked.
  var environment: PushEnvironment
  /// The seed in use.
  var seed: UInt64
  /// What the admin listener wants to see, if anything.
  var adminToken: String?
  /// Whether an export is looked at there, so that nobody can push and there is nothing to say about it.
  var isView = false

  /// The folder of certificates and keys, in which the CA lies.
  var folder: String { String(ca[..<(ca.lastIndex(of: "/") ?? ca.startIndex)]) }

  /// The file's content.
  var json: [UInt8] {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("pid", pid)
      writer.arrayMember("apns") { writer in
        for endpoint in apns { writer.object { Self.write(endpoint, to: &$0) } }
      }
      if let admin {
        writer.objectMember("admin") { Self.write(admin, to: &$0) }
      } else {
        writer.nullMember("admin")
      }
      writer.member("ca", isView ? nil : ca)
      writer.member("key_id", isView ? nil : keyID)
      writer.member("team_id", isView ? nil : teamID)
      writer.member("key", isView ? nil : key)
      writer.member("environment", isView ? nil : environment.rawValue)
      writer.member("seed", isView ? nil : seed)
      writer.member("admin_token", adminToken)
    }
    return writer.bytes + [UInt8(ascii: "\n")]
  }

  private static func write(_ endpoint: Endpoint, to writer: inout JSONWriter) {
    writer.member("host", endpoint.host)
    writer.member("port", endpoint.port)
  }
}

extension PortFile: Decodable {
  /// Reads the file's content.
  ///
  /// - Throws: `DecodingError`.
  init(json: [UInt8]) throws { self = try JSONDecoder().decode(PortFile.self, from: Data(json)) }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Member.self)
    pid = try members.decode(Int32.self, forKey: .pid)
    apns = try members.decode([Address].self, forKey: .apns).map(\.endpoint)
    admin = try members.decodeIfPresent(Address.self, forKey: .admin)?.endpoint
    adminToken = try members.decodeIfPresent(String.self, forKey: .admin_token)
    isView = try members.decodeNil(forKey: .ca)
    guard !isView else {
      (ca, keyID, teamID, key, environment, seed) = ("", "", "", "", .sandbox, 0)
      return
    }
    ca = try members.decode(String.self, forKey: .ca)
    keyID = try members.decode(String.self, forKey: .key_id)
    teamID = try members.decode(String.self, forKey: .team_id)
    key = try members.decode(String.self, forKey: .key)
    let environmentName = try members.decode(String.self, forKey: .environment)
    environment = PushEnvironment(rawValue: environmentName) ?? .sandbox
    seed = try members.decode(UInt64.self, forKey: .seed)
  }

  private enum Member: CodingKey {
    case pid, apns, admin, ca, key_id, team_id, key, environment, seed, admin_token
  }

  /// An address as it is written in JSON.
  struct Address: Decodable {
    var host: String
    var port: Int
    var endpoint: Endpoint { Endpoint(host: host, port: port) }
  }
}
