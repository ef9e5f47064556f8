#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The file descriptors that were open when this program started. Only those are passed to a child: not every library sets
/// `FD_CLOEXEC`, and a child that outlives this program would keep its ports.
struct InheritedFiles: Sendable {
  private let numbers: Set<Int32>

  /// Records the descriptors that are open now.
  init() { numbers = Self.open }

  /// Sets `FD_CLOEXEC` on all descriptors opened since.
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
