import Notation

extension PortFile {
  /// The port file named by the flag, or else by `APNS_MOCK_PORT_FILE`; nil if neither names one.
  ///
  /// - Throws: `CommandFailure`: `unreachable` if it is not there (yet), `usage` if it is something else.
  static func named(byFlag flag: String?, _ environment: [String: String]) throws -> PortFile? {
    guard let path = flag ?? environment.given(Setting.portFile.variable) else { return nil }
    let source = flag == nil ? Setting.portFile.variable : Setting.portFile.flag
    let bytes: [UInt8]
    do {
      bytes = try Files.contents(of: path)
    } catch {
      throw CommandFailure(
        .unreachable,
        "\(source): \(error); a server writes it when it is ready: apns-mock serve --port-file \(path.shellQuoted)")
    }
    do {
      return try PortFile(json: bytes)
    } catch {
      throw CommandFailure(.usage, "\(source): \(path) is not a port file of apns-mock")
    }
  }
}
