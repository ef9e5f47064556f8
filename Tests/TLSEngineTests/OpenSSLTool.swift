import Foundation

/// The `openssl` program, as an independent check of keys and certificates.
struct OpenSSLTool {
  /// The folder of the program's files; `remove` deletes it.
  let folder: URL

  /// The exit status and the combined output of a run.
  struct Outcome {
    let status: Int32
    let output: String
  }

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-engine-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  /// Writes a file into the folder.
  func write(_ name: String, _ bytes: [UInt8]) throws {
    try Data(bytes).write(to: folder.appendingPathComponent(name))
  }

  func write(_ name: String, _ text: String) throws { try write(name, Array(text.utf8)) }

  /// Returns the path of a file in the folder.
  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  /// Returns the contents of a file in the folder.
  func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: folder.appendingPathComponent(name))) }

  func text(_ name: String) throws -> String { String(decoding: try bytes(name), as: UTF8.self) }

  /// Runs `openssl` in the folder and returns its exit status and its combined output.
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
