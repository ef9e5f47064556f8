import Foundation
import MockAPNS
import NIOPosix

/// The openssl program: an opinion that has nothing to do with this project.
///
/// Nothing here waits on the thread of a test: there are few of them, and Foundation's way to wait for a process needs
/// one of its own.
enum OpenSSLTool {
  /// Runs it until it ends.
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

  /// Makes a certificate that signs itself, for one name.
  static func makeCertificate(subject: String, name: String, chain: String, key: String) async throws {
    try await run([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", chain,
      "-subj", subject, "-addext", "subjectAltName=DNS:\(name)",
    ])
  }

  /// Runs `openssl s_server` on a free port while `body` runs.
  ///
  /// - Parameter arguments: what it is told besides its port.
  static func serve(_ arguments: [String], _ body: (Endpoint) async throws -> Void) async throws {
    let process = process(["s_server", "-accept", "127.0.0.1:0", "-www"] + arguments)
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    // SIGTERM does not reach it: it inherits a signal mask from a thread that lets none through.
    defer { kill(process.processIdentifier, SIGKILL) }
    let endpoint = try await NIOThreadPool.singleton.runIfActive { try listening(output.fileHandleForReading) }
    try await body(endpoint)
  }

  /// What it could not do.
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

  /// It says "ACCEPT 127.0.0.1:40123" when it listens.
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
