// SPDX-License-Identifier: Apache-2.0

// One import for code written for NSURLConnection or AFNetworking: Foundation's requests and responses, the umbrella
// module, and the client. As in the umbrella module, exporting a type by name makes it take precedence over
// Foundation's type of the same name, provided that no other file of this module imports it by name.
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
