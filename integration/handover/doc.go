// Package handover judges who held a lock, a lease or the lead, and when, by the transactions that the servers have logged:
// their order is the only one that counts, and no client is believed.
//
// A holder makes a record while it holds: one transaction that checks that its own node is there and sets the data of a journal
// node to "<name> <token>". Together with the creates and deletes of the contenders' nodes and the ends of their sessions this
// says, for each record, who else was in front of the line at that very moment. Judge is the way in.
package handover
