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

  /// A handler whose lines go to `write`, each with its line break.
  init(
    format: LogFormat, level: Logger.Level, coloured: Bool = StandardStream.error.takesColours,
    write: @escaping @Sendable ([UInt8]) -> Void = { StandardStream.error.write($0) }
  ) {
    self.format = format
    self.write = write
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
    let bytes =
      switch format {
      case .text: Array(line.text(coloured: isColoured).utf8)
      case .json: line.json
      }
    write(bytes + [UInt8(ascii: "\n")])
  }
}
