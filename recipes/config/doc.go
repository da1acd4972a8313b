// Package config keeps typed configuration in znodes: read by everybody, watched, changed by compare-and-set, and known even
// when the ensemble cannot be reached.
//
// Value is one node with one value. Rollout keeps each version in a node of its own that never changes, and for each
// cohort of readers a pointer to one of them, so that a version can be tried on a few before all get it, and taken back.
//
// What is guaranteed:
//   - What does not decode, or what the validation refuses, never comes into force: the last good version stays, and Fault
//     tells what was wrong. The same holds if the node is deleted.
//   - Versions come into force in the order in which they were written. Not every version is seen: the last one counts.
//   - Update loses no other writer's change, and applies its own once: if a reply is lost, it looks what has become of the
//     write. If that cannot be known any more, the error says so (recipes.ErrUnknown) and nothing is written again.
//   - The file with the last good version is replaced as a whole or not at all. A file that is damaged is not used.
//
// What is not guaranteed:
//   - That all readers have the same version at the same time. Each follows the server that it is connected to.
//   - That a version is in force when Update or Promote returns, but for the Value that did the Update.
//   - A value is limited by the size of a node, 1 MB unless the servers are told otherwise.
//
// The main path is Open, Value.follow, Value.offer and Value.Update; Rollout.Publish, Rollout.Promote and Rollout.Follow.
package config
