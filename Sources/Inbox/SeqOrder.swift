/// Numbers of records in ascending order.
extension [Int] {
  /// Adds a number.
  ///
  /// - Returns: false if it is there already.
  @discardableResult
  mutating func insert(seq: Int) -> Bool {
    let position = position(ofSeq: seq)
    if position < endIndex, self[position] == seq { return false }
    insert(seq, at: position)
    return true
  }

  /// Takes a number out.
  ///
  /// - Returns: false if it is not there.
  @discardableResult
  mutating func remove(seq: Int) -> Bool {
    let position = position(ofSeq: seq)
    guard position < endIndex, self[position] == seq else { return false }
    remove(at: position)
    return true
  }

  /// Where a number stands, or would stand.
  func position(ofSeq seq: Int) -> Int {
    // Nearly always behind the last one.
    guard let last, last >= seq else { return endIndex }
    var low = startIndex
    var high = endIndex
    while low < high {
      let middle = low + (high - low) / 2
      if self[middle] >= seq { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
