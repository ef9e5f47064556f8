internal import Hummingbird
internal import APNSMockNotation

/// A page of a list: at most `limit` items (1 to 1000, by default 1000) after the item whose key is `after` (by
/// default from the beginning).
struct ListPage {
  private static let limits = 1...1000

  private let limit: Int
  private let after: String?

  /// Reads `limit` and `after` from the query string.
  ///
  /// - Parameter further: The names of further parameters, which the caller reads.
  /// - Throws: `Problem` (400) for any other parameter, a repeated one, or a limit out of range.
  init(_ request: Request, additionalNames: [String] = []) throws(Problem) {
    var parameters = try QueryParameters(request)
    after = try parameters.remove("after")
    if let text = try parameters.remove("limit") {
      guard let limit = Int(text), Self.limits.contains(limit) else {
        throw .badRequest(
          "limit cannot be \"\(text.prefix(80))\"",
          hint: "It must be a whole number from \(Self.limits.lowerBound) to \(Self.limits.upperBound).")
      }
      self.limit = limit
    } else {
      limit = Self.limits.upperBound
    }
    try parameters.end(additionalNames + ["limit", "after"], leaving: additionalNames)
  }

  /// Returns the page of a list in ascending order of its keys. If no item has the key `after`, the page begins
  /// where that item would be, so that paging can continue after an item was removed.
  ///
  /// - Returns: The items, and the `after` of the next page; nil for the last page.
  func slice<Item>(_ items: [Item], by key: (Item) -> String) -> (items: ArraySlice<Item>, next: String?) {
    let start = after.map { after in items.firstIndex { key($0) > after } ?? items.endIndex } ?? items.startIndex
    return page(of: items, from: start, by: key)
  }

  /// Returns the page of a list of names in arbitrary order.
  ///
  /// - Returns: The names, and the `after` of the next page; nil for the last page.
  /// - Throws: `Problem` (400) if `after` is none of the names.
  func slice(ofNames names: [String]) throws(Problem) -> (items: ArraySlice<String>, next: String?) {
    guard let after else { return page(of: names, from: names.startIndex, by: \.self) }
    guard let index = names.firstIndex(of: after) else {
      throw .badRequest(
        "after does not match an item of the list: \"\(after.prefix(80))\"", hint: "Start again without after.")
    }
    return page(of: names, from: names.index(after: index), by: \.self)
  }

  /// Returns the page of a list that is read from a position on, such as `120`; `next` is the position of the next
  /// page.
  ///
  /// - Parameter read: Returns up to a number of items from a position on, and the position after them; nil at the end.
  /// - Throws: `Problem` (400) if `after` is not a position.
  func slice<Item>(
    reading read: (_ position: Int, _ limit: Int) -> (items: [Item], next: Int?)
  ) throws(Problem) -> (items: ArraySlice<Item>, next: String?) {
    let (position, limit) = try position()
    let page = read(position, limit)
    return (page.items[...], page.next.map(String.init))
  }

  /// Returns the position at which the page of such a list begins, and the maximum number of its items.
  ///
  /// - Throws: `Problem` (400) if `after` is not a position.
  func position() throws(Problem) -> (start: Int, limit: Int) {
    guard let start = Int(after ?? "0"), start >= 0 else {
      throw .badRequest(
        "after cannot be \"\((after ?? "").prefix(80))\"", hint: "It must be the next of the page before.")
    }
    return (start, limit)
  }

  private func page<Item>(
    of items: [Item], from start: Int, by key: (Item) -> String
  ) -> (items: ArraySlice<Item>, next: String?) {
    let page = items[start...].prefix(limit)
    return (page, page.endIndex < items.endIndex ? page.last.map(key) : nil)
  }
}

extension ListPage {
  /// Returns the response with the requested page of a list in ascending order of its keys.
  func response<Item>(
    _ items: [Item], by key: (Item) -> String, _ write: (Item) -> (inout JSONWriter) -> Void
  ) -> Response {
    .json { writer in
      writer.page(slice(items, by: key), of: items.count) { item, writer in write(item)(&writer) }
    }
  }
}

extension JSONWriter {
  /// Writes a page of a list: `items`, the `next` page's `after` (null for the last page), and the `total` of the list.
  mutating func page<Item>(
    _ page: (items: ArraySlice<Item>, next: String?), of total: Int, _ item: (Item, inout JSONWriter) -> Void
  ) {
    arrayMember("items") { writer in
      for element in page.items { writer.object { item(element, &$0) } }
    }
    member("next", page.next)
    member("total", total)
  }
}
