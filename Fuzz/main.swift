import Foundation

// The way into libFuzzer. It reads the arguments; which target is meant stands in the environment, because it starts itself
// anew for some of its modes (-minimize_crash=1, -merge=1) with the arguments it knows.

/// libFuzzer's loop, for programs that have a `main` of their own: SwiftPM's have.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ takeInput: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

// Seeds that cannot lie in a repository, because keys and certificates are part of them: made anew each time.
if let folder = ProcessInfo.processInfo.environment["FUZZ_SEEDS"] {
  for (index, seed) in FuzzTargets.chosen.seeds.enumerated() {
    try Data(seed).write(to: URL(filePath: folder).appending(path: "made-\(index)"))
  }
}

/// Called with each input. What goes wrong ends the process: libFuzzer keeps the input then. It has the name under which
/// the `main` of libFuzzer looks for it, which is linked in too.
@_cdecl("LLVMFuzzerTestOneInput")
func takeInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  FuzzTargets.chosen.run(UnsafeRawBufferPointer(start: start, count: count))
  return 0
}

private var count = CommandLine.argc
private var arguments = CommandLine.unsafeArgv
exit(runFuzzer(&count, &arguments, takeInput))
