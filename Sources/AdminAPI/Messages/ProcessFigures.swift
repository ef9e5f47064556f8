internal import APNSMockPlatformLibc
internal import MockAPNS

/// The metrics about the process that Prometheus' client libraries have, with their names. Those that the operating system does
/// not show in `/proc` are left out.
enum ProcessFigures {
  /// Writes the metrics.
  ///
  /// - Parameter startTime: When the server started, in milliseconds since 1970.
  static func write(startTime: Int64, to text: inout MetricsText) {
    text.family(
      "process_start_time_seconds", .gauge, "When the server started, in seconds since 1970.",
      [.init(value: "\(Double(startTime) / 1000)")])
    text.family(
      "process_cpu_seconds", .counter, "CPU time of the process, user and system.", [.init(value: "\(cpuSeconds)")])
    text.family("process_max_fds", .gauge, "The maximum number of open file descriptors.", FileDescriptorBudget.limit)
    if let count = openDescriptors { text.family("process_open_fds", .gauge, "Open file descriptors.", count) }
    guard let pages = memoryPages else { return }
    let size = Int(sysconf(Int32(_SC_PAGESIZE)))
    text.family("process_virtual_memory_bytes", .gauge, "Size of the address space.", pages.virtual * size)
    text.family("process_resident_memory_bytes", .gauge, "Memory in use.", pages.resident * size)
  }

  private static var cpuSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  private static var openDescriptors: Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    // Without `.`, `..` and the descriptor of the folder itself.
    return count - 3
  }

  /// The pages of the address space and of the memory in use.
  private static var memoryPages: (virtual: Int, resident: Int)? {
    guard let bytes = try? WholeFile(path: "/proc/self/statm").bytes(limit: 4096) else { return nil }
    let numbers = bytes.split(separator: UInt8(ascii: " ")).map { Int(String(decoding: $0, as: UTF8.self)) }
    guard numbers.count > 1, let virtual = numbers[0], let resident = numbers[1] else { return nil }
    return (virtual, resident)
  }
}
