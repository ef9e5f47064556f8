internal import APNSMockEmbeddedFiles
internal import APNSMockInbox
internal import APNSMockNotation

/// The OpenAPI 3.1 description of the admin API, assembled from the files in the folder `OpenAPI`.
///
/// The files are YAML, which is easier to write, one per subject. Responses that are common to all operations of a
/// kind are added here, and the schemas of documents that are parsed by a `MapSchema`.
package struct APIDescription: Sendable {
  /// The description as JSON on one line.
  package let json: [UInt8]

  /// Assembles the description.
  ///
  /// - Parameter version: The program's version.
  package init(version: String) {
    var document = Value.object([])
    for file in EmbeddedFile.apiDescription { document.merge(Value(yaml: file.text)) }
    for body in Self.requestBodies { document.merge(Value(yaml: JSONSchemaWriter.components(of: body))) }
    document["info"]?["version"] = .scalar(.text(version))
    document["paths"]?.changeMembers { _, path in
      path.changeMembers { name, operation in
        if Self.methods.contains(name) { Self.complete(&operation) }
      }
    }
    var writer = JSONWriter(capacity: 128 << 10)
    document.write(to: &writer)
    json = writer.bytes
  }

  private static let requestBodies = [
    Verification.schema.description, CheckRequest.schema.description, ProfileRequest.schema.description,
    SimulationRequest.schema.description, ClockRequest.schema.description, AdvanceRequest.schema.description,
    KeyRequest.schema.description, TokenRequest.schema.description, SubscriptionRequest.schema.description,
    ChannelRequest.schema.description, ResetRequest.schema.description, RotationRequest.schema.description,
    SendRequest.schema.description, RunRequest.schema.description, TestRequest.schema.description,
    TestEndRequest.schema.description,
  ]

  private static let methods: Set<String> = ["get", "put", "post", "patch", "delete"]

  /// Adds the responses that are common to all operations of its kind.
  private static func complete(_ operation: inout Value) {
    var common: [(status: String, response: String)] = []
    // Operations need the token unless they declare `security`, and a known host name unless they declare
    // `x-any-host`.
    if operation["security"] == nil { common.append(("401", "Unauthorized")) }
    if operation["x-any-host"] == nil { common += [("403", "Forbidden"), ("503", "Busy")] }
    if operation["requestBody"] != nil { common += [("413", "TooLarge"), ("415", "UnsupportedMediaType")] }
    common.append(("500", "Failure"))
    for (status, response) in common {
      let reference = Value.object([("$ref", .scalar(.text("#/components/responses/\(response)")))])
      operation["responses"]?.merge(.object([(status, reference)]))
    }
  }
}

extension APIDescription {
  /// A mutable JSON document that keeps the order of members.
  fileprivate indirect enum Value {
    enum Scalar {
      case null, flag(Bool), integer(Int), number(Double), text(String)
    }

    case scalar(Scalar)
    case list([Value])
    case object([(name: String, value: Value)])

    /// Parses a YAML file of the package. Invalid YAML becomes an empty object, which a test detects.
    init(yaml: String) {
      let node = try? YAMLNode.parse(yaml)
      self = node.map(Value.init) ?? .object([])
    }

    private init(_ node: YAMLNode) {
      switch node.content {
      case .map(let entries): self = .object(entries.map { ($0.key, Value($0.value)) })
      case .list(let elements): self = .list(elements.map(Value.init))
      case .scalar(let scalar): self = .scalar(Self.value(of: scalar))
      }
    }

    private static func value(of scalar: YAMLNode.Scalar) -> Scalar {
      // Quoted scalars are always text.
      guard !scalar.isString else { return .text(scalar.text) }
      switch scalar.text {
      case "null": return .null
      case "true": return .flag(true)
      case "false": return .flag(false)
      default:
        if let integer = Int(scalar.text) { return .integer(integer) }
        return Double(scalar.text).map { .number($0) } ?? .text(scalar.text)
      }
    }

    /// The value of a member; nil if it does not exist or this is not an object.
    subscript(name: String) -> Value? {
      get {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
      }
      set {
        guard case .object(var members) = self, let newValue else { return }
        if let index = members.firstIndex(where: { $0.name == name }) {
          members[index].value = newValue
        } else {
          members.append((name, newValue))
        }
        self = .object(members)
      }
    }

    mutating func changeMembers(_ change: (String, inout Value) -> Void) {
      guard case .object(var members) = self else { return }
      for index in members.indices { change(members[index].name, &members[index].value) }
      self = .object(members)
    }

    /// Merges another object into this one. Members of both are merged if they are objects; otherwise the existing
    /// value is kept.
    mutating func merge(_ other: Value) {
      guard case .object(let members) = other else { return }
      for (name, value) in members {
        if self[name] == nil { self[name] = value } else { self[name]?.merge(value) }
      }
    }

    func write(to writer: inout JSONWriter) {
      switch self {
      case .scalar(.null): writer.null()
      case .scalar(.flag(let flag)): writer.bool(flag)
      case .scalar(.integer(let integer)): writer.integer(integer)
      case .scalar(.number(let number)): writer.number(number)
      case .scalar(.text(let text)): writer.string(text)
      case .list(let elements):
        writer.array { writer in
          for element in elements { element.write(to: &writer) }
        }
      case .object(let members):
        writer.object { writer in
          for (name, value) in members {
            writer.name(name)
            value.write(to: &writer)
          }
        }
      }
    }
  }
}
