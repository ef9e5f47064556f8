import APNSRules
import Faults
import HTTP2Session
import Inbox

/// A push whose story has not ended: a fault lets it wait, or lets its answer out piece by piece.
struct HeldPush {
  /// Its stream; it stays this push's until it is closed.
  let stream: RequestStream
  /// What is going to happen.
  let course: Course
  /// The answer with its ids, should it be given.
  let answer: AnswerTemplates.Template?
  /// What its attempts are counted by; nil when they were not.
  let countKey: PushKey?
  /// Monotonic nanoseconds when it came.
  let began: Int64
  /// The number of its record, once the inbox has it; nil also when the record is at its end already.
  var seq: Int?
  /// Pieces of the answer's body that have not left.
  var piecesLeft = 0
}
