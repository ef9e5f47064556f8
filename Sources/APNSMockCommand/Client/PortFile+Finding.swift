import Notation

extension PortFile {
  /// Reads the port file specified by the flag, else by `APNS_MOCK_PORT_FILE`; returns nil if neither is set.
  ///
  /// - Throws: `CommandFailure`: `unreachable` if the file does not exist (yet), `usage` if it is not a port file.
  static func named(byFlag flag: String?, _ environment: [String: String]) throws -> PortFile? {
    guard let path = flag ?? environment.given(Setting.portFile.variable) else { return nil }
    let source = flag == nil ? Setting.portFile.variable : Setting.portFile.flag
    let bytes: [UInt8]
    do {
      bytes = try Files.contents(of: path)
    } catch {
      throw CommandFailure(
        .unreachable,
        "\(source): \(error); a server creates the file when ready: apns-mock serve --port-file \(path.shellQuoted)")
    }
    do {
      return try PortFile(json: bytes)
    } catch {
      throw CommandFailure(.usage, "\(source): \(path) is not a port file of apns-mock")
    }
  }
}
