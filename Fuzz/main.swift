import Foundation

// Starts libFuzzer, which reads the arguments. The target is in an environment variable, because in some modes
// (-minimize_crash=1, -merge=1) libFuzzer starts itself again with only the arguments it knows.

/// libFuzzer's loop, for programs with their own `main`, as those of SwiftPM.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ takeInput: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

// Writes seeds that cannot be stored in the repository because they contain keys and certificates.
if let folder = ProcessInfo.processInfo.environment["FUZZ_SEEDS"] {
  let step = ProcessInfo.processInfo.environment["FUZZ_SEED_STEP"].flatMap { Int($0) } ?? 1
  for (index, seed) in FuzzTargets.chosen.seeds.enumerated() where index.isMultiple(of: step) {
    try Data(seed).write(to: URL(filePath: folder).appending(path: "made-\(index)"))
  }
}

/// Called with each input. A failure terminates the process, and libFuzzer keeps the input. The name is the one
/// that libFuzzer's own `main`, which is also linked, expects.
@_cdecl("LLVMFuzzerTestOneInput")
func takeInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  FuzzTargets.chosen.run(UnsafeRawBufferPointer(start: start, count: count))
  return 0
}

private var count = CommandLine.argc
private var arguments = CommandLine.unsafeArgv
exit(runFuzzer(&count, &arguments, takeInput))
