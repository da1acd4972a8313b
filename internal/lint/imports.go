package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rule is what one package may import of this module.
type rule struct {
	// code are the packages its code may import; "..." allows all.
	code string
	// tests are what its tests may import beside that and the package itself.
	tests string
}

// seeded may be imported by the tests of every package.
const seeded = "internal/seeded"

// table says who may import whom. The arrows point down: nothing here imports what stands below it in the heart of the
// server, and a package that is not in the table has no place yet.
var table = map[string]rule{
	"jute":                     {},
	"zab/zxid":                 {},
	"zab/ensemble":             {code: "zab/zxid"},
	"wire":                     {code: "jute zab/zxid"},
	"internal/sasl":            {},
	"wire/peer":                {code: "zab zab/ensemble zab/zxid internal/sasl"},
	"session":                  {code: "zab/zxid"},
	"znode":                    {code: "wire jute zab/zxid internal/adler", tests: "internal/ahead"},
	"zab":                      {code: "zab/ensemble zab/zxid", tests: "zab/zabtest"},
	"zab/zabtest":              {code: "zab zab/ensemble zab/zxid"},
	"internal/adler":           {},
	"internal/ahead":           {},
	"internal/histogram":       {},
	"internal/logfile":         {},
	"internal/storage/vfs":     {},
	"internal/storage":         {code: "internal/storage/vfs internal/adler zab zab/zxid jute", tests: "znode wire"},
	"server/replica":           {code: "zab zab/zxid znode session wire jute internal/histogram internal/sasl", tests: "internal/storage internal/storage/vfs server/client internal/ahead"},
	"server/admin":             {code: "wire zab/zxid"},
	"conf":                     {code: "zab/zxid zab/ensemble internal/sasl"},
	"internal/certs":           {code: "conf", tests: "internal/certs/certstest"},
	"internal/certs/certstest": {},
	"server": {
		code:  "jute wire wire/peer znode session zab zab/zxid zab/ensemble conf server/admin server/replica internal/storage internal/storage/vfs internal/ahead internal/histogram internal/certs internal/sasl internal/logfile",
		tests: "server/client server/servertest internal/certs/certstest integration/opsrecord",
	},
	"server/client":       {code: "wire jute zab/zxid internal/sasl", tests: "server/servertest server conf"},
	"server/servertest":   {code: "server conf server/client wire jute zab/zxid internal/storage/vfs"},
	"cmd/zabra":           {code: "server conf server/admin server/client zab/zxid internal/sim internal/tools internal/entrypoint internal/bench internal/cli internal/lab internal/logfile", tests: "..."},
	"internal/sim":        {code: "server/replica internal/storage internal/storage/vfs zab zab/zxid zab/ensemble znode session wire jute"},
	"internal/cli":        {code: "wire jute zab/zxid server/client conf internal/certs internal/sasl", tests: "server/servertest"},
	"internal/bench":      {code: "wire jute zab/zxid", tests: "server/servertest server/client"},
	"internal/lab":        {code: "recipes recipes/lock server/client", tests: "server/servertest"},
	"internal/lint":       {},
	"internal/tools":      {code: "internal/storage internal/storage/vfs server/replica znode wire jute zab zab/zxid"},
	"internal/entrypoint": {tests: "conf"},
	"recipes":             {tests: "recipes/recipestest server/servertest"},
	"recipes/lock":        {code: "recipes", tests: "recipes/recipestest server/servertest"},
	"recipes/recipestest": {code: "recipes server/servertest"},
	"recipes/election":    {code: "recipes recipes/lock", tests: "recipes/recipestest server/servertest"},
	"recipes/node":        {code: "recipes", tests: "recipes/recipestest server/servertest"},
	"recipes/group":       {code: "recipes recipes/node recipes/cache", tests: "recipes/recipestest server/servertest"},
	"recipes/cache":       {code: "recipes", tests: "recipes/recipestest server/servertest"},
	"recipes/config":      {code: "recipes recipes/cache", tests: "recipes/recipestest server/servertest"},
	"recipes/discovery":   {code: "recipes", tests: "recipes/recipestest server/servertest"},
	"recipes/queue":       {code: "recipes", tests: "recipes/recipestest server/servertest"},
	"recipes/barrier":     {code: "recipes", tests: "recipes/recipestest server/servertest"},
	"recipes/counter":     {code: "recipes", tests: "recipes/recipestest server/servertest"},
	"recipes/schema":      {code: "recipes", tests: "recipes/recipestest"},
	seeded:                {},
}

// outside says which packages may use a module that is not ours: in code and tests, or in tests only.
var outside = map[string]struct{ code, tests string }{
	"go.uber.org/zap":                         {code: "server server/replica cmd/zabra", tests: "..."},
	"github.com/spf13/cobra":                  {code: "cmd/zabra"},
	"github.com/klauspost/compress":           {code: "internal/storage", tests: "..."},
	"golang.org/x/sys":                        {code: "server internal/storage internal/storage/vfs cmd/zabra internal/bench internal/tools"},
	"github.com/HdrHistogram/hdrhistogram-go": {code: "internal/bench integration", tests: "..."},
	"github.com/prometheus/client_golang":     {code: "server"},
	"github.com/prometheus/common":            {code: "server"},
	"github.com/prometheus/client_model":      {tests: "server"},
	"github.com/go-zookeeper/zk":              {code: "recipes integration internal/lab", tests: "..."},
	"github.com/hashicorp/go-msgpack":         {code: "wire/peer"},
	"github.com/magiconair/properties":        {tests: "conf"},
	"github.com/pavlo-v-chernykh/keystore-go": {code: "internal/certs"},
	"software.sslmate.com/src/go-pkcs12":      {code: "internal/certs"},
	"github.com/stretchr/testify":             {code: "server/servertest zab/zabtest", tests: "..."},
	"go.uber.org/goleak":                      {code: "recipes/recipestest", tests: "..."},
	"github.com/ergochat/readline":            {code: "internal/cli"},
	"github.com/creack/pty":                   {tests: "internal/cli cmd/zabra"},
	"golang.org/x/term":                       {code: "internal/cli cmd/zabra"},
	"go.yaml.in/yaml/v3":                      {tests: "cmd/zabra server"},
	"pgregory.net/rapid":                      {code: seeded, tests: "..."},
	"github.com/anishathalye/porcupine":       {tests: "..."},
}

// checkImports compares every import with the tables. Packages below integration speak to sockets and files only: they
// import nothing of the server.
func checkImports(s *source) (findings []Finding) {
	own, known := table[s.pkg]
	if s.pkg == "integration" || strings.HasPrefix(s.pkg, "integration/") {
		own, known = rule{code: "recipes recipes/lock recipes/election recipes/barrier recipes/discovery integration/harness integration/judge integration/handover integration/opsrecord"}, true
	}
	if !known {
		return s.finding(s.ast.Package, "import", "package %s is not in the import table of internal/lint", s.pkg)
	}
	for _, spec := range s.ast.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		why := ""
		switch inner, ours := strings.CutPrefix(path, modulePath+"/"); {
		case ours && !allows(own.code, inner) && !(s.test && (inner == s.pkg || inner == seeded || allows(own.tests, inner))):
			why = fmt.Sprintf("%s must not import %s", s.pkg, inner)
		case !ours && strings.Contains(strings.Split(path, "/")[0], "."):
			why = foreign(s, path)
		}
		if why != "" {
			findings = append(findings, s.finding(spec.Pos(), "import", "%s", why)...)
		}
	}
	return findings
}

// foreign judges an import of another module.
func foreign(s *source, path string) string {
	for module, who := range outside {
		if path != module && !strings.HasPrefix(path, module+"/") {
			continue
		}
		if allows(who.code, strings.Split(s.pkg, "/")[0]) || allows(who.code, s.pkg) || s.test && allows(who.tests, s.pkg) {
			return ""
		}
		return fmt.Sprintf("%s must not import %s", s.pkg, path)
	}
	return fmt.Sprintf("module of %s is not in the table of internal/lint", path)
}

func allows(list, pkg string) bool {
	return list == "..." || slices.Contains(strings.Fields(list), pkg)
}

// checkReachable returns a finding for each forbidden package among the dependencies of the binary.
func checkReachable(dependencies []string) (findings []Finding) {
	for _, d := range dependencies {
		forbidden := d == "testing" || strings.HasPrefix(d, "testing/") ||
			strings.HasPrefix(d, "github.com/stretchr/testify") || d == modulePath+"/server/servertest"
		if forbidden {
			findings = append(findings, Finding{"cmd/zabra", 0, "reachable", d + " is reachable from the binary"})
		}
	}
	return findings
}
