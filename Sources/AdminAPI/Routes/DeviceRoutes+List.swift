internal import APNSMockRules
internal import APNSMockDevices
internal import Hummingbird
internal import MockAPNS
internal import APNSMockNotation

/// The list of registered device tokens, its search, and the lookup of several tokens.
extension DeviceRoutes {
  func list(_ request: Request, _ context: AdminContext) async throws -> Response {
    let list = try ListPage(request, additionalNames: ["search", "tokens"])
    var parameters = try QueryParameters(request)
    let search = try parameters.remove("search") ?? ""
    let page: (items: ArraySlice<DeviceRegistry.TokenListing>, next: String?)
    if let tokens = try parameters.remove("tokens") {
      page = (try registered(tokens)[...], nil)
    } else if search.isEmpty {
      page = try list.slice { state.devices.tokens(from: $0, limit: $1) }
    } else {
      page = try await find(search, in: list)
    }
    let (_, total) = state.devices.counts
    return .json { $0.page(page, of: total) { token, writer in token.write(to: &writer) } }
  }

  /// The maximum number of tokens that can be looked up at once.
  private static let lookups = 100

  /// Returns those of the listed tokens that are registered.
  ///
  /// - Parameter list: Device tokens separated by commas.
  private func registered(_ list: String) throws -> [DeviceRegistry.TokenListing] {
    let tokens = list.split(separator: ",")
    guard tokens.count <= Self.lookups else {
      throw Problem.badRequest("tokens has \(tokens.count) device tokens", hint: "Use at most \(Self.lookups).")
    }
    return try tokens.compactMap { state.devices.token(try Self.checked(String($0))) }
  }

  /// The number of tokens compared before pushes may use the registry again.
  private static let scannedAtOnce = 512

  /// Returns the page of the tokens that contain a text.
  private func find(_ text: String, in list: ListPage) async throws -> (
    items: ArraySlice<DeviceRegistry.TokenListing>, next: String?
  ) {
    guard text.utf8.count <= Rulebook.topicLimit else {
      throw Problem.badRequest("search has \(text.utf8.count) bytes", hint: "Use at most \(Rulebook.topicLimit).")
    }
    let pattern = TextPattern("*\(text)*", foldsCase: true)
    var (position, limit) = try list.position()
    var found: [DeviceRegistry.TokenListing] = []
    while true {
      let (items, next) = state.devices.tokens(
        matching: pattern, from: position, limit: limit - found.count, scanning: Self.scannedAtOnce)
      found += items
      guard let next, found.count < limit else { return (found[...], next.map(String.init)) }
      position = next
      // Without a pause this task would take the registry's lock again before a waiting push does.
      try await Task.sleep(for: .microseconds(50))
    }
  }
}
