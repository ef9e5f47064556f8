#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The files that were open when this program was started: those alone are a child's business too. Not everything that
/// a library opens is closed by itself when a child begins, and a child that outlives this program would keep the ports.
struct InheritedFiles: Sendable {
  private let numbers: Set<Int32>

  /// The files that are open now.
  init() { numbers = Self.open }

  /// Sees to it that no child gets the files that were opened since.
  func hideOthers() {
    for number in Self.open.subtracting(numbers) { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
  }

  private static var open: Set<Int32> {
    guard let folder = opendir("/dev/fd") else { return [0, 1, 2] }
    defer { closedir(folder) }
    var numbers: Set<Int32> = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if let number = Int32(name) { numbers.insert(number) }
    }
    return numbers
  }
}
