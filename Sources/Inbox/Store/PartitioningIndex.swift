extension RandomAccessCollection {
  /// Returns the first index for whose element `isAfter` returns true, which must then hold for all later elements; the end if
  /// there is none.
  func partitioningIndex(where isAfter: (Element) -> Bool) -> Index {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = index(low, offsetBy: distance(from: low, to: high) / 2)
      if isAfter(self[middle]) { high = middle } else { low = index(after: middle) }
    }
    return low
  }
}
