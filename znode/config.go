package znode

import "zabra/zab/zxid"

// SetConfig gives the node /zookeeper/config the text of the membership, by itself and not by a transaction, as each
// server of an ensemble does before it serves: its mtime is that of this server and it does not count in the digest. Like
// ZooKeeper it sets the node's version to -1 and its mzxid to the version of the membership. It
// counts in a quota, so that the usage is the same on all servers, whenever the quota was made. The caller holds Lock;
// nobody is notified.
func (t *Tree) SetConfig(text []byte, version zxid.Zxid, wallMs int64) {
	path := []byte(ConfigPath)
	id, ok := t.Find(path)
	if !ok {
		panic("znode: " + ConfigPath + " is missing")
	}
	n := t.begin(id, path)
	delta := len(text) - int(max(n.dataLen, 0))
	t.replaceData(id, path, text)
	n.version, n.mzxid, n.mtime = -1, int64(version), wallMs
	t.end(n, path)
	t.quotaChanged(path, delta)
}
