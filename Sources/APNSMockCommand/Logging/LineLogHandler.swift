import Logging
import MockAPNS

/// A log handler that writes lines of text or JSON to standard error.
struct LineLogHandler: LogHandler {
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var logLevel: Logger.Level

  /// The machine's time. Logs do not use the adjustable clock of the server.
  private static let clock = ServerClock()

  private let format: LogFormat
  private let isColoured: Bool
  private let write: @Sendable ([UInt8]) -> Void

  /// Creates a handler that passes each line with its line break to `write`, by default to standard error.
  init(
    format: LogFormat, level: Logger.Level, coloured: Bool = StandardStream.error.takesColours,
    write: (@Sendable ([UInt8]) -> Void)? = nil
  ) {
    self.format = format
    self.write =
      write ?? { line in
        LogPipe.standardError.write(line) { dropped in
          Self.bytes(Self.gap(dropped), as: format, coloured: coloured)
        }
      }
    isColoured = coloured
    logLevel = level
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var all = metadata
    if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
    if let added = event.metadata { all.merge(added) { $1 } }
    let line = LogLine(time: Self.clock.now, event: event, metadata: all)
    write(Self.bytes(line, as: format, coloured: isColoured))
  }

  private static func bytes(_ line: LogLine, as format: LogFormat, coloured: Bool) -> [UInt8] {
    let bytes =
      switch format {
      case .text: Array(line.text(coloured: coloured).utf8)
      case .json: line.json
      }
    return bytes + [UInt8(ascii: "\n")]
  }

  /// Returns the line that replaces dropped lines.
  private static func gap(_ dropped: Int) -> LogLine {
    let event = LogEvent(
      level: .warning, message: "\(dropped) log lines were dropped because standard error was not read",
      metadata: nil, source: "apns-mock", file: #fileID, function: #function, line: #line)
    return LogLine(time: clock.now, event: event, metadata: [:])
  }
}
