// SPDX-License-Identifier: Apache-2.0

/// The entry point for libFuzzer: an untrusted datagram to the examples' name server.
///
/// It must be ignored, or answered with its own id by a message that fits into a DNS datagram, is marked as an
/// answer, and is ignored if it is parsed as a question, so that two servers never answer each other.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  var answers: [[UInt8]] = []
  switch DNSQuestion.read(bytes) {
  case .ignored: precondition(count < 12 || bytes[2] & 0x80 != 0, "a question is ignored")
  case .rejected(let code, let header):
    precondition(code != .none && header == Array(bytes[..<12]))
    answers.append(DNSQuestion.rejection(code, header: header))
  case .question(let question):
    precondition(question.name.utf8.count <= 3 * 255 && question.name == question.name.lowercased())
    for records in 0..<3 {
      let record = (type: DNSQuestion.text, data: [UInt8](repeating: 7, count: 255))
      answers.append(question.answer(Array(repeating: record, count: records)))
    }
    answers.append(question.answer([], .noSuchName))
  }
  for answer in answers {
    precondition(answer.count >= 12 && answer.count <= 512, "an answer of \(answer.count) bytes")
    precondition(answer[..<2].elementsEqual(bytes[..<2]) && answer[2] & 0x80 != 0, "no answer to this")
    guard case .ignored = DNSQuestion.read(answer) else { preconditionFailure("an answer is answered") }
  }
  return 0
}
