import Foundation
import MockAPNS
import NIOPosix

/// The openssl program, which is independent of this project.
///
/// Nothing here blocks the thread of a test: the pool has few threads, and waiting for a process with Foundation
/// takes one.
enum OpenSSLTool {
  /// Runs openssl until it exits.
  static func run(_ arguments: [String]) async throws {
    let process = process(arguments)
    process.standardOutput = FileHandle.nullDevice
    let status = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Int32, any Error>) in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
    guard status == 0 else { throw Failure(said: "openssl \(arguments.joined(separator: " ")) ended with \(status)") }
  }

  /// Creates a self-signed certificate for one name.
  static func makeCertificate(subject: String, name: String, chain: String, key: String) async throws {
    try await run([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", chain,
      "-subj", subject, "-addext", "subjectAltName=DNS:\(name)",
    ])
  }

  /// Runs `openssl s_server` on a free port while `body` runs.
  ///
  /// - Parameter arguments: The arguments in addition to the port.
  static func serve(_ arguments: [String], _ body: (Endpoint) async throws -> Void) async throws {
    let process = process(["s_server", "-accept", "127.0.0.1:0", "-www"] + arguments)
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    // SIGTERM does not reach the process: it inherits the signal mask of a thread that blocks all signals.
    defer { kill(process.processIdentifier, SIGKILL) }
    let endpoint = try await NIOThreadPool.singleton.runIfActive { try listening(output.fileHandleForReading) }
    try await body(endpoint)
  }

  /// A run of openssl that failed, with its output.
  struct Failure: Error {
    let said: String
  }

  private static func process(_ arguments: [String]) -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    return process
  }

  /// Returns the endpoint of the server, which prints "ACCEPT 127.0.0.1:40123" when it listens.
  private static func listening(_ output: FileHandle) throws -> Endpoint {
    var said = ""
    while true {
      let more = output.availableData
      said += String(decoding: more, as: UTF8.self)
      let line = said.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first {
        $0.hasPrefix("ACCEPT ")
      }
      if let line, let endpoint = Endpoint(line.dropFirst("ACCEPT ".count)) { return endpoint }
      if more.isEmpty { throw Failure(said: said) }
    }
  }
}
