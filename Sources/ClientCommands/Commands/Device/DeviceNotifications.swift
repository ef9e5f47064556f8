import ArgumentParser
import HTTPTypes

/// `apns-mock device notifications`
struct DeviceNotifications: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "notifications", abstract: "Show the notifications on a device, or print them as they arrive.",
    discussion: """
      Prints YAML, or with --json an object. With --follow, prints one JSON object per notification until the server stops; its \
      payload is a file for xcrun simctl push. Without an id it follows all devices. --event also selects what happens to Live \
      Activities, such as activity.started, which has the new token.
      """)

  @Argument(help: "The id of the device. With --follow, all devices if it is omitted.")
  var id: String?

  @Flag(name: .long, help: "Print notifications as the device receives them.")
  var follow = false

  @Option(
    name: .long,
    help: .value(
      "event",
      """
      With --follow: notification, activity.started, activity.rotated or activity.ended; repeatable. (default: notification)
      """), completion: .list(["notification", "activity.started", "activity.rotated", "activity.ended"]))
  var event: [String] = []

  @Option(
    name: .long,
    help: .value("bundle-id", "With --follow and without id, only of apps with this bundle id; * matches any text."))
  var bundleID: String?

  @Option(
    name: .long, help: .value("push-type", "With --follow and without id, only of pushes of this type."),
    completion: .pushType)
  var pushType: String?

  @OptionGroup var flags: AdminFlags

  func validate() throws {
    if !follow {
      guard id != nil else { throw ValidationError("name a device, or follow all of them with --follow") }
      guard event.isEmpty, bundleID == nil, pushType == nil else {
        throw ValidationError("--event, --bundle-id and --push-type need --follow")
      }
    } else if id != nil, bundleID != nil || pushType != nil {
      throw ValidationError("--bundle-id and --push-type are for all devices: omit the id")
    }
    let known = ["notification", "activity.started", "activity.rotated", "activity.ended"]
    if let other = event.first(where: { !known.contains($0) }) {
      throw ValidationError("--event cannot be \(other): expected \(known.joined(separator: ", "))")
    }
  }

  func run() async throws {
    guard follow else {
      return try flags.printYAML(try await flags.request(.get, "/devices/\((id ?? "").percentEncoded)/notifications"))
    }
    let names = event.isEmpty ? ["notification"] : event
    var path = "/api/v1/devices\(id.map { "/" + $0.percentEncoded } ?? "")/notifications/stream"
    if id == nil {
      let parameters: [(String, String?)] = [
        ("event", names.joined(separator: ",")), ("bundle_id", bundleID), ("push_type", pushType),
      ]
      path +=
        "?"
        + parameters.compactMap { name, value in value.map { "\(name)=\($0.percentEncoded)" } }.joined(separator: "&")
    }
    var parser = EventStreamParser()
    try await flags.client().stream(path) { bytes in
      parser.parse(bytes).allSatisfy { event in
        if event.name == "gap" { StandardStream.error.line("events are missing: the output is read too slowly") }
        return !names.contains(event.name) || StandardStream.output.write(event.data + [UInt8(ascii: "\n")])
      }
    }
  }
}
