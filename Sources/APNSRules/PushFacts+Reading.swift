public import HTTPMessage

extension PushFacts {
  /// What the header fields of a request say that is not judged, because it did not come whole.
  public init(_ headers: HeaderList) {
    self = headers.bytes.withUnsafeBytes {
      FieldReader($0, defaultTopic: nil, comparesOtherNames: false).facts
    }
  }
}
