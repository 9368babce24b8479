// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit

extension Date {
  /// The date a number of milliseconds after the start of 2001, at which the virtual wall clock begins.
  static func virtual(_ milliseconds: Int) -> Date {
    Date(timeIntervalSinceReferenceDate: Double(milliseconds) / 1000)
  }

  /// A date in milliseconds of virtual time, or its name.
  var text: String {
    switch self {
    case .distantFuture: "future"
    case .distantPast: "past"
    default: "\(timeIntervalSinceReferenceDate * 1000)".replacing(/\.0$/, with: "")
    }
  }
}
