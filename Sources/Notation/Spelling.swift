/// Suggestions for misspelt names.
public enum Spelling {
  /// Returns the name most similar to `word`; nil if more than a third of its letters differ.
  public static func nearest(to word: String, among names: some Sequence<String>) -> String? {
    let word = word.lowercased().replacing("-", with: "_")
    // Limit the length: the distance takes time proportional to the product of both lengths.
    let letters = Array(word.unicodeScalars.prefix(64))
    // A name that begins or ends with the whole word is similar at any length: `token` for `device_token`.
    let near = names.map { name in
      let other = name.lowercased().replacing("-", with: "_")
      let isPart = word.count >= 3 && (other.hasPrefix(word) || other.hasSuffix(word))
      return (name: name, distance: isPart ? 1 : distance(letters, Array(other.unicodeScalars)))
    }
    guard let best = near.min(by: { $0.distance < $1.distance }), best.distance <= max(1, best.name.count / 3) else {
      return nil
    }
    return best.name
  }

  /// Returns the number of insertions, deletions, substitutions and swaps of adjacent letters between two words.
  private static func distance(_ one: [Unicode.Scalar], _ other: [Unicode.Scalar]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...other.count)
    for (row, letter) in one.enumerated() {
      var current = [row + 1]
      for (column, otherLetter) in other.enumerated() {
        var best = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == otherLetter ? 0 : 1))
        if row > 0, column > 0, letter == other[column - 1], one[row - 1] == otherLetter {
          best = min(best, beforeLast[column - 1] + 1)
        }
        current.append(best)
      }
      beforeLast = last
      last = current
    }
    return last[other.count]
  }
}

extension [String] {
  /// The elements as text, such as `a, b or c`.
  public var spokenChoice: String {
    guard let last, count > 1 else { return first ?? "" }
    return dropLast().joined(separator: ", ") + " or " + last
  }
}
