package zab

// Expected is the table of what may come in when.
var Expected = expected

// MessageKindsEnd is one more than the highest kind.
const MessageKindsEnd = messageKinds
