// The platform's C library under one name, so that other files need no conditional imports.
//
// `@preconcurrency`, because `environ` is not annotated for concurrency.
#if canImport(Darwin)
  @preconcurrency @_exported public import Darwin
#elseif canImport(Musl)
  @preconcurrency @_exported public import Musl
#else
  @preconcurrency @_exported public import Glibc
#endif

/// Returns the environment of this process as strings `NAME=VALUE`, byte for byte. They remain owned by the C library;
/// no other thread may change the environment while they are in use.
package func environmentStrings() -> [UnsafeMutablePointer<CChar>] {
  var strings: [UnsafeMutablePointer<CChar>] = []
  var next: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = environ
  while let pointer = next, let string = pointer.pointee {
    strings.append(string)
    next = pointer + 1
  }
  return strings
}

/// Returns the names in a folder, without order; nil if it cannot be read, with the reason in `errno`.
package func names(inFolder path: String) -> [String]? {
  guard let folder = opendir(path) else { return nil }
  defer { closedir(folder) }
  var names: [String] = []
  while let entry = readdir(folder) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    names.append(name)
  }
  return names
}

/// Writes all bytes to a file or a pipe, and waits as long as a pipe is full.
///
/// - Returns: Whether all bytes were written; if not, the reason is in `errno`.
package func writeAll(_ bytes: some Collection<UInt8>, to file: Int32) -> Bool {
  var rest = Array(bytes)[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    if count > 0 {
      rest = rest.dropFirst(count)
    } else if count < 0, errno == EAGAIN {
      // Another process that shares the pipe has made it non-blocking.
      var asked = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
      poll(&asked, 1, -1)
    } else if count == 0 || errno != EINTR {
      return false
    }
  }
  return true
}

/// The absolute path of the running program; nil if the system does not say it.
package var programPath: String? {
  #if os(Linux)
    let found = realpath("/proc/self/exe", nil)
  #else
    let found = CommandLine.arguments.first.flatMap { $0.contains("/") ? realpath($0, nil) : nil }
  #endif
  defer { free(found) }
  return found.map { String(cString: $0) }
}
