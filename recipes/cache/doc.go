// Package cache keeps copies of znodes in memory and in step with the server: of one node (Node), of the children of a
// node (Children), or of everything below a node (Tree). It stands on one-shot watches, since the client library has no
// others.
//
// What is guaranteed:
//   - Contents and events never go back. What a cache has shown of a node is never followed by something older: not after a
//     reconnect, not on a server that lags behind, not after the session is lost. The order of changes to one node is
//     the order in which they were made. A parent is Added before its children and Removed after them.
//   - Whoever follows the events from the first one has the contents of the cache: see Events.
//   - A node that was deleted and made again is Removed and Added, even if both happened between two looks: it has another
//     czxid. It is never shown as a change of the old one.
//   - After a reconnect everything is read again, because a watch can be lost while the connection changes.
//   - Without a connection the last known contents stay, and Age tells how old they are.
//
// What is not guaranteed:
//   - That every version is seen. Between two looks a node may change many times; the last one counts. Nor are changes of
//     different nodes shown in the order in which they were made.
//   - That contents are the newest: they follow the server that this client is connected to, which may lag behind its leader.
//     A dead connection is noticed after two thirds of the session timeout at the latest, and until then Age says nothing of it.
//
// What it costs: a watch per node for its data and, in a Tree, another one for its children, each with a goroutine that
// waits (about 3 KB). One change costs one read of the node and, if it was made or deleted, one list of its parent's children.
// A reconnect costs a read of everything. The client library cannot take a watch back, so for a node that does not
// change, each reconnect leaves about 200 bytes there, until the node changes or the session ends.
//
// The main path is mirror.schedule, mirror.dispatch, mirror.read, mirror.applyData and mirror.applyList.
package cache
