internal import HTTPMessage

extension Record {
  /// The `user-agent` of pushes sent by `apns-mock send`, `doctor` and the web UI. Each uses a connection of its
  /// own, which is not a fault of the provider.
  public static let ownUserAgent = "apns-mock"

  /// Whether one of these clients sent the push.
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
