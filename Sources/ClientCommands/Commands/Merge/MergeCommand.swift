import ArgumentParser
import APNSMockInbox
import MockAPNS

/// `apns-mock merge`
struct MergeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "merge", abstract: "Merge the exports, or the metrics, of several servers into one.",
    discussion: """
      For load tests with several servers that share nothing. Records of exports (ndjson or json) are printed one per \
      line in the order of their arrival, with new seq values; the id of a connection gets the number of its file as \
      prefix: 2-c7. Attempts and findings stay as each server determined them. Metrics, as GET /metrics returns them, \
      are added up.
      """)

  @Argument(help: .value("file", "The exports, or files with metrics; - for standard input."), completion: .file())
  var files: [String]

  @Option(name: .long, help: .value("file", "The output file. (default: standard output)"), completion: .file())
  var output: String?

  func validate() throws {
    guard files.filter({ $0 == "-" }).count <= 1 else { throw ValidationError("Specify - only once") }
  }

  func run() throws {
    let inputs = try files.map { try MergeInput($0) }
    let exports = inputs.filter(\.isExport)
    guard exports.isEmpty || exports.count == inputs.count else {
      let metrics = inputs.first { !$0.isExport }?.path ?? ""
      throw CommandFailure(
        .usage, "\(exports[0].path) is an export and \(metrics) is not: merge exports and metrics separately")
    }
    let destination = try MergeOutput(output)
    if exports.isEmpty {
      try writeMetrics(of: inputs, to: destination)
    } else {
      try writeRecords(of: inputs, to: destination)
    }
    try destination.commit()
  }

  private func writeMetrics(of inputs: [MergeInput], to destination: MergeOutput) throws {
    var merge = MetricsMerge()
    for input in inputs {
      do {
        try merge.add(try input.text())
      } catch let problem as MetricsMerge.Problem {
        throw CommandFailure(.usage, "\(input.path):\(problem.line): \(problem.reason)".onOneLine)
      }
    }
    _ = try destination.write(Array(merge.text.utf8))
  }

  private func writeRecords(of inputs: [MergeInput], to destination: MergeOutput) throws {
    var merge = ExportMerge(inputs.map { input in { try input.next() } })
    var text: [UInt8] = []
    do {
      while let record = try merge.next() {
        text += record
        text.append(UInt8(ascii: "\n"))
        guard text.count >= 1 << 20 else { continue }
        guard try destination.write(text) else { return }
        destination.report("\(merge.count) records merged")
        text.removeAll(keepingCapacity: true)
      }
    } catch let problem as ExportMerge.Problem {
      throw CommandFailure(.usage, "\(inputs[problem.input].path):\(problem.problem)".onOneLine)
    }
    _ = try destination.write(text)
    StandardStream.error.line("\(merge.count) records of \(inputs.count) exports merged")
  }
}

/// A file to merge.
private final class MergeInput {
  let path: String
  /// Whether it is an export; otherwise it is read as metrics.
  let isExport: Bool
  private let file: FileParts
  /// The part that was read to find out the kind of file.
  private var first: ArraySlice<UInt8>?

  /// Opens the file.
  ///
  /// - Throws: `CommandFailure` if it cannot be read.
  init(_ path: String) throws {
    self.path = path
    file = try FileParts(path)
    first = try file.next()
    let start = first?.first { !" \t\r\n".utf8.contains($0) }
    // An empty file is the export of an empty inbox.
    isExport = start.map { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") } ?? true
  }

  /// Returns the next part of the file; nil at its end.
  func next() throws -> ArraySlice<UInt8>? {
    guard let part = first else { return try file.next() }
    first = nil
    return part
  }

  /// Returns the rest of the file as text.
  func text() throws -> String {
    var bytes: [UInt8] = []
    while let part = try next() {
      bytes += part
      guard bytes.count <= 64 << 20 else {
        throw CommandFailure(.usage, "\(path) is neither an export nor metrics: it is larger than 64 MiB")
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The destination of the merged text: standard output, or a file that is replaced when the text is complete.
private final class MergeOutput {
  private let file: FileReplacement?
  private let showsProgress: Bool
  private var lastReport = ContinuousClock.now

  init(_ path: String?) throws {
    file = try path.map { try Files.replacement(of: $0, isPrivate: true) }
    showsProgress = path != nil && StandardStream.error.isTerminal
  }

  /// Writes a part of the text.
  ///
  /// - Returns: false if the reader of standard output has closed it.
  func write(_ text: [UInt8]) throws -> Bool {
    guard let file else { return StandardStream.output.write(text) }
    try Files.writing { () throws(FileError) in try file.append(text) }
    return true
  }

  /// Prints the progress once per second, if standard error is a terminal.
  func report(_ progress: String) {
    guard showsProgress, ContinuousClock.now - lastReport >= .seconds(1) else { return }
    lastReport = .now
    StandardStream.error.line(progress)
  }

  func commit() throws {
    if let file { try Files.writing { () throws(FileError) in try file.commit() } }
  }
}
