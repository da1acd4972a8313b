package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// markdownLink finds the target of [text](target).
var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// checkLinks finds links of a document that lead to no file. name is relative to root; links to the web and within the
// document are left alone.
func checkLinks(root, name, text string) (findings []Finding) {
	for i, line := range strings.Split(text, "\n") {
		for _, m := range markdownLink.FindAllStringSubmatch(line, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path := filepath.Join(root, filepath.Dir(name), target)
			if _, err := os.Stat(path); err != nil {
				findings = append(findings, Finding{name, i + 1, "link", target + " does not exist"})
			}
		}
	}
	return findings
}
