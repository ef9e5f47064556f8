#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// How the files and sockets that the process may have open are shared out, so that a crowd at one door shuts no other.
package enum Descriptors {
  /// For listeners, event loops, files and standard streams.
  private static let reserve = 64
  /// More than so many connections to the admin API at once are nobody's need.
  private static let mostForAdministration = 1024

  /// The limit that is in force now (`ulimit -n`).
  package static var limit: Int { max(0, sysconf(Int32(_SC_OPEN_MAX))) }

  /// Connections to the admin API.
  package static var forAdministration: Int { forAdministration(of: limit) }

  /// Connections of providers.
  package static var forProviders: Int {
    let limit = limit
    return max(limit / 2, limit - forAdministration(of: limit) - reserve)
  }

  private static func forAdministration(of limit: Int) -> Int { min(mostForAdministration, max(1, limit / 4)) }
}
