import MockAPNS
import NIOHTTP1

/// The server that may be running, for commands that also do without: what is changed in the folder of certificates is
/// told to it too, and it knows more fault profiles than this program.
struct NeighbouringServer: Sendable {
  /// What is found where a server would be; nil if not even that.
  private let running: RunningServer?
  /// Why not.
  private let absence: CommandFailure?
  /// Whether a flag names it, so that its absence is an error.
  private let isDemanded: Bool

  /// Finds it as every client command does.
  ///
  /// - Throws: `CommandFailure` for flags and port files that cannot be used.
  init(_ flags: ServerFlags, environment: [String: String]) throws {
    isDemanded = flags.portFile != nil || flags.admin != nil
    do {
      (running, absence) = (try RunningServer(flags, environment: environment), nil)
    } catch let failure as CommandFailure where failure.status == .unreachable {
      (running, absence) = (nil, failure)
    }
  }

  /// What it wrote down, if it was found that way.
  var portFile: PortFile? { running?.portFile }

  /// What it is called in messages.
  var name: String { running.map { "the server on \($0.client.endpoint)" } ?? "no server" }

  /// Asks it something.
  ///
  /// - Returns: nil if nobody is there, and no flag says that somebody is.
  /// - Throws: `CommandFailure` of status `unreachable` if a flag does.
  func request(_ method: HTTPMethod, _ path: String, body: [UInt8]? = nil) async throws -> AdminClient.Answer? {
    do {
      if let absence { throw absence }
      return try await running?.client.request(method, path, body: body)
    } catch let failure as CommandFailure where failure.status == .unreachable && !isDemanded {
      return nil
    }
  }

  /// The fingerprint of its CA, by which it can be seen whether it has the same folder.
  func authorityFingerprint() async throws -> String? {
    guard let answer = try await request(.GET, "/api/v1/status"), answer.status == 200 else { return nil }
    return try answer.decoded(Status.self).ca?.fingerprint
  }

  private struct Status: Decodable {
    /// Null for a view of an export.
    var ca: Authority?

    struct Authority: Decodable {
      var fingerprint: String
    }
  }
}
