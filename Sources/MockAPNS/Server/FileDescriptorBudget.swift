import APNSMockPlatformLibc

/// The division of the process's file descriptors among its listeners, so that many connections to one cannot
/// exhaust the others' share.
package enum FileDescriptorBudget {
  /// Descriptors reserved for listeners, event loops, files and standard streams.
  private static let reserve = 64
  /// The maximum number of simultaneous connections to the admin API, most of which may be waits.
  private static let maxAdminConnections = 16_384

  /// The current limit of open files (`ulimit -n`).
  package static var limit: Int { max(0, sysconf(Int32(_SC_OPEN_MAX))) }

  /// The maximum number of connections to the admin API: a quarter of a limit below 8192, else half of it;
  /// at most 16 384.
  package static var adminConnections: Int { adminConnections(of: limit) }

  /// The maximum number of provider connections.
  package static var providerConnections: Int {
    let limit = limit
    return max(limit / 2, limit - adminConnections(of: limit) - reserve)
  }

  private static func adminConnections(of limit: Int) -> Int {
    min(maxAdminConnections, max(1, limit < 8192 ? limit / 4 : limit / 2))
  }
}
