import MockAPNS

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The pages of program and libraries that only the start needed: loading, relocating, certificates, profiles. On Linux,
/// with the Swift runtime as shared libraries, they are two thirds of what an idle server would hold.
enum StartupPages {
  /// Gives them back to the system. What is used again comes back from the file, 16 pages at a time.
  static func release() {
    #if os(Linux)
      guard let mappings = try? WholeFile(path: "/proc/self/smaps").bytes(limit: 16 << 20) else { return }
      for mapping in unchanged(in: String(decoding: mappings, as: UTF8.self)) {
        madvise(UnsafeMutableRawPointer(bitPattern: mapping.lowerBound), mapping.count, Int32(MADV_DONTNEED))
      }
    #endif
  }

  /// The addresses of what is mapped from files, cannot be written to and differs nowhere from the file, in a text such as
  /// `/proc/self/smaps` (proc_pid_smaps(5)). A debugger's breakpoint in a mapping, or an address that the loader wrote, is a
  /// change that would be lost.
  static func unchanged(in mappings: String) -> [Range<UInt>] {
    var found: [Range<UInt>] = []
    var candidate: Range<UInt>?
    // By bytes, and words of two lines in thirty only: this is a hundred kilobytes.
    for line in mappings.utf8.split(separator: UInt8(ascii: "\n")) {
      if let letter = line.first, !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(letter) {
        candidate = wholeFile(in: Substring(line).split(separator: " "))
      } else if line.starts(with: "Anonymous:".utf8), let unwritten = candidate {
        if Substring(line).split(separator: " ").dropFirst().first == "0" { found.append(unwritten) }
      }
    }
    return found
  }

  /// The addresses of a mapping by the first line about it, if it is of a file, private and not to be written to.
  private static func wholeFile(in words: [Substring]) -> Range<UInt>? {
    let bounds = words.first?.split(separator: "-").compactMap { UInt($0, radix: 16) } ?? []
    guard words.count > 5, words[5].hasPrefix("/"), words[1].hasPrefix("r-"), words[1].hasSuffix("p"),
      bounds.count == 2, bounds[0] < bounds[1]
    else { return nil }
    return bounds[0]..<bounds[1]
  }
}
