internal import HTTPMessage

extension Record {
  /// The `user-agent` of pushes that `apns-mock send`, `doctor` and the page make: each on a connection of its own, which is
  /// no provider's fault.
  public static let ownUserAgent = "apns-mock"

  /// Whether one of these made it.
  var isByOwnClient: Bool {
    withHeaders { packed in
      var isOurs = false
      HeaderList.forEachField(in: packed) { name, value in
        guard packed[name.indices].elementsEqual("user-agent".utf8) else { return }
        isOurs = packed[value.indices].elementsEqual(Self.ownUserAgent.utf8)
      }
      return isOurs
    }
  }
}
