public import HTTPMessage

extension PushFacts {
  /// What the header fields of a request say that was judged elsewhere.
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

  /// What the header fields of a request say that is not judged, because it did not come whole.
  public init(_ headers: HeaderList) {
    self = headers.bytes.withUnsafeBytes {
      FieldReader($0, defaultTopic: nil, comparesOtherNames: false).facts
    }
  }
}
