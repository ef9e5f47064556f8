import Foundation

/// The `openssl` program, as a second opinion on what is made here.
struct OpenSSLTool {
  /// A folder for its files, which goes with `remove`.
  let folder: URL

  /// What a run gave.
  struct Outcome {
    let status: Int32
    let output: String
  }

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-engine-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  /// Puts a file into the folder.
  func write(_ name: String, _ bytes: [UInt8]) throws {
    try Data(bytes).write(to: folder.appendingPathComponent(name))
  }

  func write(_ name: String, _ text: String) throws { try write(name, Array(text.utf8)) }

  /// Where a file of the folder is.
  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  /// A file of the folder.
  func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: folder.appendingPathComponent(name))) }

  func text(_ name: String) throws -> String { String(decoding: try bytes(name), as: UTF8.self) }

  /// Runs `openssl` in the folder. Output and errors come together.
  @discardableResult
  func run(_ arguments: String...) throws -> Outcome { try run(arguments) }

  @discardableResult
  func run(_ arguments: [String]) throws -> Outcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    process.currentDirectoryURL = folder
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Outcome(status: process.terminationStatus, output: String(decoding: output, as: UTF8.self))
  }
}
