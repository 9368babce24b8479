// SPDX-License-Identifier: Apache-2.0

// One import for code that was written for NSURLConnection or AFNetworking: Foundation's requests and answers, the
// umbrella, and the client. As in the umbrella, exporting a type by its name makes it win where Foundation has one of
// the same name, and no other file of this module imports one of these by its name.
@_exported public import FoundationNetworking
@_exported public import class RunLoopCore.Port
@_exported public import class RunLoopCore.RunLoop
@_exported public import class RunLoopCore.Timer
@_exported public import class RunLoopFoundation.NotificationQueue
@_exported public import class RunLoopFoundation.PortMessage
@_exported public import protocol RunLoopFoundation.PortDelegate
@_exported public import RunLoopKit
@_exported public import RunLoopHTTP
@_exported public import class RunLoopThreads.Thread
