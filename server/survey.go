package server

import (
	"cmp"
	"slices"

	"zabra/server/admin"
	"zabra/znode"
)

// survey looks through the tree and the watches for what is largest. It goes through all nodes, in stretches between which
// writers get their turn, so that what it shows is of no single moment.
func (s *Server) survey(n int) admin.Object {
	tree := s.replica.Tree()
	nodes, lists := largest{n: n}, largest{n: n}
	for at := znode.Node(0); ; {
		if at = surveyStretch(tree, at, &nodes, &lists); at == 0 {
			break
		}
		select {
		case <-s.quit:
			return nil
		default:
		}
	}
	return admin.Object{
		{Name: "widest_watches", Value: widest(tree.Watches(), n)},
		{Name: "biggest_znodes", Value: nodes.objects("bytes")},
		{Name: "largest_children_lists", Value: lists.objects("children")},
	}
}

func surveyStretch(tree *znode.Tree, at znode.Node, nodes, lists *largest) znode.Node {
	const shard = 0
	tree.RLock(shard)
	defer tree.RUnlock(shard)
	var path []byte
	return tree.Survey(at, surveyNodes, func(id znode.Node) {
		name := func() string {
			path = tree.AppendPath(path[:0], id)
			return string(path[:min(len(path), topPathBytesMax)])
		}
		nodes.offer(int64(len(tree.Data(id))), name)
		lists.offer(int64(tree.NumChildren(id)), name)
	})
}

// widest lists the paths with the most watchers. A persistent watch stands in both tables.
func widest(w *znode.Watches, n int) []admin.Object {
	all := largest{n: n}
	for table, kind := range map[znode.WatchTable]string{znode.TableData: "data", znode.TableChild: "child"} {
		w.VisitWidths(table, func(path string, watchers int) {
			all.offerOf(kind, int64(watchers), func() string { return path[:min(len(path), topPathBytesMax)] })
		})
	}
	return all.objects("watchers")
}

// largest keeps the n largest of what it is offered.
type largest struct {
	n    int
	list []sized // the largest first
}

type sized struct {
	path, kind string
	size       int64
}

func (l *largest) offer(size int64, path func() string) { l.offerOf("", size, path) }

// offerOf asks for the path only of what is kept, which soon is little of all there is.
func (l *largest) offerOf(kind string, size int64, path func() string) {
	if size == 0 || len(l.list) == l.n && size <= l.list[l.n-1].size {
		return
	}
	i, _ := slices.BinarySearchFunc(l.list, size, func(e sized, size int64) int {
		if e.size >= size {
			return -1
		}
		return 1
	})
	l.list = slices.Insert(l.list, i, sized{path(), kind, size})
	l.list = l.list[:min(len(l.list), l.n)]
}

func (l *largest) objects(unit string) []admin.Object {
	slices.SortFunc(l.list, func(a, b sized) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind))
	})
	list := []admin.Object{}
	for _, e := range l.list {
		o := admin.Object{{Name: "path", Value: e.path}}
		if e.kind != "" {
			o = append(o, admin.Field{Name: "kind", Value: e.kind})
		}
		list = append(list, append(o, admin.Field{Name: unit, Value: e.size}))
	}
	return list
}
