import APNSMockRules
import Foundation
import APNSMockInbox
import APNSMockNotation

@testable import MockAPNS

/// Fuzzes a provider's connection, through TLS, from its first byte to its records. The input is a
/// `ConnectionScript`; its first line selects rules, profile and client certificate.
struct ConnectionsTarget: FuzzTarget {
  private let server: FuzzServer

  init() throws { server = try FuzzServer() }

  func run(_ bytes: UnsafeRawBufferPointer) { lookAtRecords(of: converse(bytes)) }

  /// Executes the script against a new server.
  ///
  /// Runs on a new thread, so that the next input's event loop shares no thread-local records. Rules' effects are
  /// part of records, and their references to actions store the enum case in spare bits, which LeakSanitizer
  /// reports as leaks.
  func converse(_ bytes: UnsafeRawBufferPointer) -> ServerState {
    var input = Input(bytes)
    // The first line configures the server and the provider.
    let beginning = input.text().split(separator: " ")
    let state = server.state(
      rules: beginning.contains("strict") ? .strict : beginning.contains("lenient") ? .lenient : .apple)
    var script = { converse(input, beginning, with: state) }
    withUnsafeMutablePointer(to: &script) { script in
      var thread = pthread_t()
      let isBegun = pthread_create(
        &thread, nil,
        { script in
          script?.assumingMemoryBound(to: (() -> Void).self).pointee()
          return nil
        }, script)
      expect(isBegun == 0 && pthread_join(thread, nil) == 0, "there is no thread")
    }
    return state
  }

  private func converse(_ input: consuming Input, _ beginning: [Substring], with state: ServerState) {
    for word in beginning { if let profile = server.profile(String(word)) { state.faults.use(profile) } }
    do {
      let provider = try FuzzProvider(server, state, hasCertificate: beginning.contains("certificate"))
      defer { provider.hangUp() }
      try provider.connect()
      var script = try ConnectionScript(provider)
      while !input.isAtEnd, provider.isOpen { try script.follow(&input) }
    } catch {
      // TLS or the connection has ended, which is allowed.
    }
  }

  /// Checks that the records of any connection can be exported and imported.
  private func lookAtRecords(of state: ServerState) {
    var export = InboxExport(
      state.inbox.snapshot(), .allKinds, as: .lines, rulebook: state.rulebook, in: state.inbox)
    var reader = InboxImport(maxBytes: 1 << 30)
    do throws(InboxImport.Problem) {
      while let piece = try? export.next() {
        for line in piece.split(separator: UInt8(ascii: "\n")) {
          let problem = line.withUnsafeBytes { JSONText.problem(in: $0) }
          expect(problem == nil, "a record is not JSON: \(problem?.description ?? "")")
        }
        try reader.read(Array(piece))
      }
      _ = try reader.finish()
    } catch {
      fatalError("an export cannot be read again: \(error)")
    }
  }
}
