import Logging
import MockAPNS

/// Writes log lines, in either format, to standard error.
struct LineLogHandler: LogHandler {
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var logLevel: Logger.Level

  /// Never moved: the time of the machine.
  private static let clock = ServerClock()

  private let format: LogFormat
  private let isColoured: Bool
  private let write: @Sendable ([UInt8]) -> Void

  /// A handler whose lines go to `write`, each with its line break; to standard error unless somebody says otherwise.
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

  /// What stands in the place of lines that nobody took.
  private static func gap(_ dropped: Int) -> LogLine {
    let event = LogEvent(
      level: .warning, message: "\(dropped) log lines were dropped: nobody read them from standard error",
      metadata: nil, source: "apns-mock", file: #fileID, function: #function, line: #line)
    return LogLine(time: clock.now, event: event, metadata: [:])
  }
}
