import NIOConcurrencyHelpers
import APNSMockTLSEngine

/// The certificate chain that the server presents in TLS handshakes. It can be switched to that of the next CA while the server
/// runs, so that a provider's trust in a new root can be rehearsed.
package final class ServerChain: Sendable {
  /// The CA that a chain ends with.
  package enum Authority: String, Sendable, CaseIterable {
    /// `ca.pem`.
    case current
    /// `ca-next.pem`.
    case next
  }

  private struct State {
    var authority = Authority.current
    /// The context of the next CA, created on first use.
    var next: TLSContext?
  }

  private let folder: CertificateFolder
  private let clientAuthorities: [String]
  private let current: TLSContext
  private let state = NIOLockedValueBox(State())

  /// - Parameter clientAuthorities: The paths of further CAs that may issue client certificates.
  /// - Throws: `TLSError` that names a file that cannot be used.
  init(folder: CertificateFolder, clientAuthorities: [String]) throws {
    self.folder = folder
    self.clientAuthorities = [folder.caPath] + clientAuthorities
    current = try TLSContext(
      serverCertificateChain: folder.serverPath, privateKey: folder.serverKeyPath,
      clientAuthorities: self.clientAuthorities)
  }

  /// The CA of the chain that new connections see.
  package var authority: Authority { state.withLockedValue { $0.authority } }

  /// The TLS context of new connections.
  var context: TLSContext { state.withLockedValue { $0.authority == .next ? $0.next ?? current : current } }

  /// Switches the chain of new connections. Open connections are not affected.
  ///
  /// - Throws: `CertificateFolderError` or `TLSError` if the folder has no usable next CA; then nothing changes.
  package func use(_ authority: Authority) throws {
    var next: TLSContext?
    // Outside of the lock, for which event loops wait: another process may have the folder.
    if authority == .next, state.withLockedValue({ $0.next == nil }) {
      next = try TLSContext(server: try folder.nextServer(), clientAuthorities: clientAuthorities)
    }
    state.withLockedValue { state in
      state.next = state.next ?? next
      state.authority = authority
    }
  }
}

extension CertificateFolder {
  /// Issues a server certificate of the next CA.
  ///
  /// - Throws: `CertificateFolderError`.
  fileprivate func nextServer() throws -> ServerIdentity {
    var setup = CertificateFolderSetup(
      path: path, now: Self.currentTime, names: try ServerNames(extra: [], host: nil))
    return try FolderLock.holding(path) {
      try CertificateFolderError.wrapping { try setup.nextServer() }
    }
  }
}
