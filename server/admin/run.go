package admin

import "encoding/binary"

// traceMaskBytes is the length of the mask behind the word stmk.
const traceMaskBytes = 8

func runRuok(Source, Input) Answer { return Text("imok") }

func runIsro(src Source, _ Input) Answer {
	switch {
	case !src.Serving():
		return Text("null")
	case src.ReadOnly():
		return Text("ro")
	}
	return Text("rw")
}

func runSrvr(src Source, _ Input) Answer { return ServerAnswer{Server: src.Server()} }

func runStat(src Source, _ Input) Answer {
	return ServerAnswer{Server: src.Server(), Clients: src.Connections(), WithClients: true}
}

func runCons(src Source, _ Input) Answer { return ConnectionsAnswer(src.Connections()) }
func runConf(src Source, _ Input) Answer { return src.Configuration() }
func runEnvi(src Source, _ Input) Answer { return src.Environment() }
func runDirs(src Source, _ Input) Answer { return src.Dirs() }
func runDump(src Source, _ Input) Answer { return src.Dump() }
func runMntr(src Source, _ Input) Answer { return src.Metrics() }
func runWchs(src Source, _ Input) Answer { return src.WatchSummary() }
func runWchc(src Source, _ Input) Answer { return BySessionAnswer(src.WatchesBySession()) }
func runWchp(src Source, _ Input) Answer { return ByPathAnswer(src.WatchesByPath()) }
func runHash(src Source, _ Input) Answer { return DigestsAnswer(src.Digests()) }
func runGtmk(src Source, _ Input) Answer { return TraceMaskAnswer(src.TraceMask()) }

func runCrst(src Source, _ Input) Answer {
	src.ResetConnections()
	return Text("Connection stats reset.\n")
}

func runSrst(src Source, _ Input) Answer {
	src.ResetServer()
	return Text("Server stats reset.\n")
}

// runStmk sets the mask that came in the same packet as the word. Without all its bytes the answer is empty.
func runStmk(src Source, in Input) Answer {
	if len(in.Tail) < traceMaskBytes {
		return Text("")
	}
	mask := int64(binary.BigEndian.Uint64(in.Tail))
	src.SetTraceMask(mask)
	return TraceMaskAnswer(mask)
}
