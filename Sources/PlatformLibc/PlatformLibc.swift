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
