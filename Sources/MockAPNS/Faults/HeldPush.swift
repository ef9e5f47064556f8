import APNSRules
import Faults
import HTTP2Session
import Inbox

/// A push whose exchange is not finished: a fault delays it, or sends its response piece by piece.
struct HeldPush {
  /// The push's stream, which is not reused until it is closed.
  let stream: RequestStream
  /// The decided exchange.
  let course: Course
  /// The response header fields with their ids; nil if there is no response.
  let answer: AnswerTemplates.Template?
  /// The key by which the push's attempts are counted; nil if they were not counted.
  let countKey: PushKey?
  /// When the push was received, in monotonic nanoseconds.
  let began: Int64
  /// The number of the push's record, once it is in the inbox; nil before, and if the record is already complete.
  var seq: Int?
  /// The number of pieces of the response body not yet sent.
  var piecesLeft = 0
}
