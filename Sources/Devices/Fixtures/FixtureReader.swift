package import APNSMockRules
package import APNSMockNotation

/// Reads fixtures from YAML or JSON: apps, devices, channels.
///
/// Devices are handed over one by one, so that a JSON file with a million of them needs no memory. All problems of all
/// files are reported, with their positions.
package struct FixtureReader: Sendable {
  /// The apps and channels of the documents.
  package struct Contents: Sendable {
    package var apps: [AppTable.App] = []
    package var channels: [ChannelDescription] = []
    /// The number of devices.
    package var devices = 0

    /// Creates empty contents.
    package init() {}
  }

  /// The lists of a fixture file.
  enum Section: String, CaseIterable {
    case apps, devices, channels
  }

  /// The values that documents may omit.
  package var defaults: FixtureDefaults
  /// The limits on YAML.
  package var limits: YAMLNode.Limits
  /// Apps that are known in addition to those of the documents.
  package var knownApps: AppTable

  /// The limits on a file of the user who runs the program. YAML is parsed as a whole, and needs some hundred bytes of
  /// memory for each value.
  package static let localFile = YAMLNode.Limits(
    length: 16 << 20, depth: 16, values: 1_000_000, rejectsCompoundKeys: false)
  /// The limits on YAML from a client of the admin API.
  package static let clientText = YAMLNode.Limits(
    length: 4 << 20, depth: 16, values: 250_000, rejectsCompoundKeys: true)

  /// The maximum number of apps.
  package static let appLimit = 10_000

  /// Creates a reader.
  package init(
    defaults: FixtureDefaults, limits: YAMLNode.Limits = Self.localFile, knownApps: AppTable = AppTable()
  ) {
    self.defaults = defaults
    self.limits = limits
    self.knownApps = knownApps
  }

  /// Reads documents.
  ///
  /// - Parameters:
  ///   - progress: Called now and then with the number of devices read so far and the fraction of the text that was
  ///     read, 0 to 1.
  ///   - add: Receives each device.
  /// - Throws: `FileFailure` with all problems; then nothing that was read may be used.
  package func read(
    _ documents: [FixtureDocument], progress: (_ devices: Int, _ fraction: Double) -> Void = { _, _ in },
    add: (DeviceDescription) throws(DeviceError) -> Void
  ) throws(FileFailure) -> Contents {
    var reading = FixtureReading(FixtureSchemas(defaults), knownApps: knownApps)
    let length = max(1, documents.reduce(0) { $0 + $1.bytes.count })
    var done = 0
    for document in documents {
      let parser = SchemaParser(file: document.name, problems: reading.problems, ignoresNull: true)
      forEachElement(of: document, parser) { section, node, offset in
        switch section {
        case .apps: reading.addApp(node, parser)
        case .channels: reading.addChannel(node, parser)
        case .devices: reading.addDevice(node, parser, add)
        }
        if reading.contents.devices.isMultiple(of: 10_000), section == .devices {
          progress(reading.contents.devices, Double(done + offset) / Double(length))
        }
        return !reading.isOver
      }
      done += document.bytes.count
      if reading.isOver { break }
    }
    reading.finish { wanted in firstPositions(of: wanted, in: documents) }
    guard !reading.problems.hasErrors else { throw FileFailure(reading.problems.inOrder) }
    progress(reading.contents.devices, 1)
    return reading.contents
  }

  /// Reads documents without using them.
  ///
  /// - Throws: `FileFailure` with all problems.
  package func lint(_ documents: [FixtureDocument], maxDevices: Int) throws(FileFailure) -> Contents {
    var contents = Contents()
    try FileFailure.converting {
      try DeviceRegistry(maxDevices: maxDevices).load(now: 0) { loader in
        contents = try read(documents) { device throws(DeviceError) in try loader.add(device) }
      }
    }
    return contents
  }

  // MARK: - Documents

  /// Calls `body` with each element of the lists of a document, until it returns false. Adds problems of the text and
  /// of keys.
  ///
  /// - Parameter body: Receives the list, the element, and the number of bytes read up to its end.
  private func forEachElement(
    of document: FixtureDocument, _ parser: SchemaParser, _ body: (Section, SchemaNode, _ offset: Int) -> Bool
  ) {
    do throws(YAMLError) {
      let isJSON = document.bytes.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
      if isJSON {
        try forEachElement(ofJSON: document, parser, body)
      } else {
        try forEachElement(ofYAML: document, parser, body)
      }
    } catch {
      parser.problems.add(error, file: document.name)
    }
  }

  private func forEachElement(
    ofJSON document: FixtureDocument, _ parser: SchemaParser, _ body: (Section, SchemaNode, Int) -> Bool
  ) throws(YAMLError) {
    var reader = JSONNodeReader(document.bytes)
    var released = 0
    var isOver = false
    try reader.object { name, position, reader throws(YAMLError) in
      guard !isOver else { return }
      guard let section = Section(rawValue: name), reader.isAtList() else {
        addOther(name, at: position, try reader.node(), parser)
        return
      }
      var index = 0
      try reader.list { reader throws(YAMLError) in
        let node = try reader.node()
        guard !isOver else { return }
        isOver = !body(section, SchemaNode(element: node, index, of: name), reader.offset)
        index += 1
        if reader.offset - released > 16 << 20 {
          released = reader.offset
          document.release(upTo: released)
        }
      }
    }
    try reader.end()
  }

  private func forEachElement(
    ofYAML document: FixtureDocument, _ parser: SchemaParser, _ body: (Section, SchemaNode, Int) -> Bool
  ) throws(YAMLError) {
    guard document.bytes.count <= limits.length else {
      throw YAMLError(
        at: nil, "longer than \(limits.length >> 20) MiB, the limit for YAML",
        hint: #"write it as JSON, {"devices": […]}, which is read piece by piece and has no limit"#)
    }
    let text = try YAMLNode.text(Array(document.bytes), limits: limits)
    let root: YAMLNode?
    do throws(YAMLError) {
      root = try YAMLNode.parse(text, limits: limits)
    } catch  where error.message.hasPrefix("more than \(limits.values) values") {
      throw YAMLError(
        at: error.position, error.message, hint: "write it as JSON, which is read piece by piece and has no limit")
    }
    guard let root else { return }
    for entry in try root.entries() {
      guard let section = Section(rawValue: entry.key), case .list(let elements) = entry.value.content else {
        addOther(entry.key, at: entry.position, entry.value, parser)
        continue
      }
      for (index, node) in elements.enumerated() {
        let element = SchemaNode(element: node, index, of: entry.key)
        guard body(section, element, document.bytes.count / 2) else { return }
      }
    }
  }

  /// Adds a problem for a key that is unknown, or whose value is neither a list nor empty.
  private func addOther(_ name: String, at position: TextPosition, _ value: YAMLNode, _ parser: SchemaParser) {
    if Section(rawValue: name) == nil {
      parser.failUnknown(name, at: position, name, among: Section.allCases.map(\.rawValue))
    } else if !value.isEmpty {
      parser.fail(
        at: value.position, name, "expected a list, not \(value.kind)", hint: "begin each element with -, or use [ ]")
    }
  }

  /// Returns where ids of devices and device tokens occur first.
  private func firstPositions(
    of wanted: Set<FixtureReading.Key>, in documents: [FixtureDocument]
  ) -> [FixtureReading.Key: FixtureReading.Place] {
    var found: [FixtureReading.Key: FixtureReading.Place] = [:]
    for document in documents {
      // The problems are known already.
      let parser = SchemaParser(file: document.name)
      forEachElement(of: document, parser) { section, node, _ in
        guard section == .devices else { return true }
        for (key, node) in FixtureReading.keys(of: node) where wanted.contains(key) && found[key] == nil {
          found[key] = FixtureReading.Place(file: document.name, position: node.position)
        }
        return found.count < wanted.count
      }
    }
    return found
  }
}

/// The state of reading several documents.
struct FixtureReading {
  /// What may occur only once in all documents.
  enum Key: Hashable {
    case device(String)
    case token(String)
  }

  struct Place {
    let file: String
    let position: TextPosition

    /// Where the place is, for a problem in `file`: `line 12`, or `other.yaml:12`.
    func text(in file: String) -> String {
      file == self.file ? "line \(position.line)" : "\(self.file):\(position.line)"
    }
  }

  let problems = ProblemList()
  private(set) var contents = FixtureReader.Contents()
  /// Whether reading further makes no sense.
  private(set) var isOver = false
  private let schemas: FixtureSchemas
  private let knownApps: AppTable
  private var apps: [String: Place] = [:]
  private var channels: [String: Place] = [:]
  private var channelCounts: [String: Int] = [:]
  /// The first use of each bundle id, to be checked when all apps are known.
  private var usedApps: [String: (place: Place, path: String)] = [:]
  private var conflicts: [(key: Key, error: DeviceError, place: Place, path: String)] = []

  init(_ schemas: FixtureSchemas, knownApps: AppTable) {
    self.schemas = schemas
    self.knownApps = knownApps
  }

  mutating func addApp(_ node: SchemaNode, _ parser: SchemaParser) {
    guard let app = schemas.app.parse(node, parser) else { return }
    let name = node["bundle_id"] ?? node
    if let other = apps[app.bundleID] {
      return parser.fail(
        name, "the app \(app.bundleID) is already in \(other.text(in: parser.file))", hint: "keep one of them")
    }
    guard contents.apps.count < FixtureReader.appLimit else {
      isOver = true
      return parser.fail(node, "more than \(FixtureReader.appLimit) apps", hint: "remove some of them")
    }
    apps[app.bundleID] = Place(file: parser.file, position: name.position)
    contents.apps.append(app)
  }

  mutating func addChannel(_ node: SchemaNode, _ parser: SchemaParser) {
    guard let channel = schemas.channel.parse(node, parser) else { return }
    noteUse(of: channel.bundleID, node, parser)
    let id = node["id"] ?? node
    let scope = "\(channel.bundleID) \(channel.environment.rawValue)"
    if let other = channels["\(scope) \(channel.id)"] {
      return parser.fail(
        id, "the channel \(channel.id) of \(channel.bundleID) is already in \(other.text(in: parser.file))",
        hint: "keep one of them")
    }
    guard channelCounts[scope, default: 0] < ChannelDescription.limit else {
      isOver = true
      return parser.fail(
        node, "more than \(ChannelDescription.limit) channels of \(channel.bundleID) (\(channel.environment.rawValue))",
        hint: "APNs allows no more; remove some of them")
    }
    channels["\(scope) \(channel.id)"] = Place(file: parser.file, position: id.position)
    channelCounts[scope, default: 0] += 1
    contents.channels.append(channel)
  }

  mutating func addDevice(
    _ node: SchemaNode, _ parser: SchemaParser, _ add: (DeviceDescription) throws(DeviceError) -> Void
  ) {
    contents.devices += 1
    guard let device = schemas.device.parse(node, parser) else { return }
    for (app, installation) in zip(device.apps, node["apps"]?.elements ?? []) where usedApps[app.bundleID] == nil {
      noteUse(of: app.bundleID, installation, parser)
    }
    do throws(DeviceError) {
      try add(device)
    } catch {
      report(error, device, node, parser)
    }
  }

  private mutating func noteUse(of bundleID: String, _ node: SchemaNode, _ parser: SchemaParser) {
    guard usedApps[bundleID] == nil, knownApps[bundleID] == nil else { return }
    let name = node["bundle_id"] ?? node
    usedApps[bundleID] = (Place(file: parser.file, position: name.position), name.path)
  }

  /// Adds a problem with a device that is correct in itself.
  private mutating func report(
    _ error: DeviceError, _ device: DeviceDescription, _ node: SchemaNode, _ parser: SchemaParser
  ) {
    let key: Key
    switch error {
    case .deviceExists(let id): key = .device(id)
    case .tokenExists(let token, _): key = .token(token)
    case .limitReached:
      isOver = true
      return parser.fail(node, error.description, hint: error.hint.asHint)
    case .alreadyInstalled(let bundleID, let environment):
      let installation = node["apps"]?.elements.last { $0["bundle_id"]?.yaml.text == bundleID }
      return parser.fail(
        installation ?? node, "\(bundleID) (\(environment.rawValue)) occurs twice on \(device.id)",
        hint: "keep one of them")
    default: return parser.fail(node, error.description, hint: error.hint.asHint)
    }
    // The last place of the device is the one that is wrong: an earlier one may be the first.
    let wrong = Self.keys(of: node).last { $0.key == key }?.node ?? node
    guard conflicts.count <= ProblemList.limit else { return }
    conflicts.append((key, error, Place(file: parser.file, position: wrong.position), wrong.path))
  }

  /// Adds the problems that are known only after all documents were read.
  ///
  /// - Parameter find: Returns the first places of ids and tokens.
  mutating func finish(_ find: (Set<Key>) -> [Key: Place]) {
    let first = conflicts.isEmpty ? [:] : find(Set(conflicts.map(\.key)))
    for (key, error, place, path) in conflicts {
      var message = error.description
      var hint = error.hint.asHint
      if let other = first[key], other.file != place.file || other.position != place.position {
        switch key {
        case .device(let id): message = "the device \(id) is already in \(other.text(in: place.file))"
        case .token(let token):
          message = "the device token \(DeviceToken.abbreviated(token)) is already in \(other.text(in: place.file))"
        }
        hint = "each may occur once; remove one of them"
      }
      problems.add(FileProblem(file: place.file, at: place.position, path: path, message, hint: hint))
    }
    guard !contents.apps.isEmpty else { return }
    for (bundleID, use) in usedApps where apps[bundleID] == nil {
      let names = Array(apps.keys) + knownApps.apps.map(\.bundleID)
      problems.add(
        FileProblem(
          file: use.place.file, at: use.place.position, path: use.path, "the app \(bundleID) is not in apps",
          hint: SchemaParser.guess(bundleID, among: names.sorted()) ?? "add it to apps: {bundle_id: \(bundleID)}"))
    }
  }

  /// Returns the id and the tokens of a device, with their places.
  static func keys(of device: SchemaNode) -> [(key: Key, node: SchemaNode)] {
    var keys: [(key: Key, node: SchemaNode)] = []
    if let id = device["id"], let text = id.yaml.text { keys.append((.device(text), id)) }
    for app in device["apps"]?.elements ?? [] {
      for tokens in app["tokens"]?.members ?? [] {
        let isList = if case .list = tokens.content { true } else { false }
        for token in isList ? tokens.elements : [tokens] {
          let token = token["token"] ?? token
          if let text = token.yaml.text { keys.append((.token(text.lowercased()), token)) }
        }
      }
    }
    return keys
  }
}

extension String {
  /// A sentence as the hint of a problem, which follows the message in its line.
  fileprivate var asHint: String {
    let text = hasSuffix(".") ? String(dropLast()) : self
    return text.prefix(1).lowercased() + text.dropFirst()
  }
}
