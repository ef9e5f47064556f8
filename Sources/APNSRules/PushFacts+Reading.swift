public import HTTPMessage

extension PushFacts {
  /// Reads the facts of a request that was validated elsewhere.
  ///
  /// - Parameter defaultTopic: the topic of a push without `apns-topic`.
  package init(_ headers: HeaderList, defaultTopic: String?) {
    var topic = defaultTopic ?? ""
    self = topic.withUTF8 { topic in
      headers.bytes.withUnsafeBytes {
        FieldReader(
          $0, defaultTopic: topic.isEmpty ? nil : UnsafeRawBufferPointer(topic), comparesOtherNames: false
        ).facts
      }
    }
  }

  /// Reads the facts of a request that is not validated because it is incomplete.
  public init(_ headers: HeaderList) {
    self = headers.bytes.withUnsafeBytes {
      FieldReader($0, defaultTopic: nil, comparesOtherNames: false).facts
    }
  }
}
